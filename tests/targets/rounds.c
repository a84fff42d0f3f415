/* A function whose first instruction is the head of its loop: a probe there is hit once a round.
 * Usage: rounds [CALLS=1000] */
#include "count.h"

COUNTER(outer);
COUNTER(middle);
COUNTER(leaf);
COUNTER(rounds);

__asm__(".text\n.globl rounds\n.type rounds, @function\n.p2align 4\n"
        "rounds:\n.cfi_startproc\npush %rbx\npop %rbx\ndec %rdi\njnz rounds\n"
        "ret\n.cfi_endproc\n.size rounds, .-rounds\n");

void rounds(unsigned long times);

FN unsigned long leaf(unsigned long x) {
    COUNT(leaf);
    return x + 1;
}

FN unsigned long middle(unsigned long x) {
    COUNT(middle);
    COUNT(rounds);
    rounds(7);
    return leaf(x) + 1;
}

FN unsigned long outer(unsigned long x) {
    COUNT(outer);
    COUNT(rounds);
    rounds(3);
    return middle(x) + 1;
}

int main(int argc, char **argv) {
    long calls = number(argc, argv, 1, 1000);
    unsigned long sum = 0;
    for (long i = 0; i < calls; i++)
        sum += outer(sum);
    printf("sum %lu\n", sum);
    SHOW(outer);
    SHOW(middle);
    SHOW(leaf);
    SHOW(rounds);
    return 0;
}
