/* Patchable functions, with nops of five or ten bytes, in a program that forks. Linux 6.18 replaces
 * such a nop under a probe by a call whose target is missing in the child.
 * Usage: nop5 [CHILDREN=3] */
#include "count.h"
#include <sys/wait.h>
#include <unistd.h>

/* Counted by the functions themselves, which are not in C. */
unsigned long calls_five, calls_ten, calls_notrack;

#define PATCHABLE(name, first)                                                                    \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n.p2align 4\n" #name ":\n"         \
            ".cfi_startproc\n" first "push %rbp\n.cfi_adjust_cfa_offset 8\n"                       \
            "incq calls_" #name "(%rip)\nlea 1(%rdi), %rax\npop %rbp\n"                            \
            ".cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size " #name ", .-" #name "\n");       \
    unsigned long name(unsigned long x)

PATCHABLE(five, ".byte 0x0f, 0x1f, 0x44, 0, 0\n");
PATCHABLE(ten, ".byte 0x66, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n");
PATCHABLE(notrack, "endbr64\n.byte 0x0f, 0x1f, 0x44, 0, 0\n");

static unsigned long all(unsigned long x) { return five(ten(notrack(x))); }

int main(int argc, char **argv) {
    long children = number(argc, argv, 1, 3);
    unsigned long sum = 0;
    int status, dead = 0;
    for (int i = 0; i < 100; i++)
        sum += all(i);
    for (long i = 0; i < children; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(all(1) == 4 ? 0 : 1);
        waitpid(pid, &status, 0);
        dead += status != 0;
    }
    printf("sum %lu\ndead %d\n", sum, dead);
    SHOW(five);
    SHOW(ten);
    SHOW(notrack);
    return 0;
}
