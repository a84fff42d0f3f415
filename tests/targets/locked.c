/* The kernel accepts a probe on this function's first instruction, but never fires it: the
 * instruction has a `lock` prefix. */
#include "count.h"

unsigned long calls_locked_entry;

__asm__(".text\n.globl locked_entry\n.type locked_entry, @function\n.p2align 4\n"
        "locked_entry:\n.cfi_startproc\nlock addq $1, calls_locked_entry(%rip)\nlea 1(%rdi), %rax\n"
        "ret\n.cfi_endproc\n.size locked_entry, .-locked_entry\n");

unsigned long locked_entry(unsigned long x);

int main(void) {
    unsigned long sum = 0;
    for (int i = 0; i < 500; i++)
        sum = locked_entry(sum);
    printf("sum %lu\n", sum);
    SHOW(locked_entry);
    return 0;
}
