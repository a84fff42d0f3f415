/* Times its own calls of one function, for benchmarks.
 * Usage: cost push|nop CALLS [CALLS_PER_SECOND=0 for as many as possible]
 * Prints `calls NAME N` and `ns_per_call X`, the loop's own cost taken off. */
#include "count.h"
#include <string.h>
#include <time.h>

/* As compilers make them with CET: endbr64; push %rbp. */
__asm__(".text\n.globl push_entry\n.type push_entry, @function\n.p2align 4\n"
        "push_entry:\n.cfi_startproc\nendbr64\npush %rbp\n.cfi_adjust_cfa_offset 8\n"
        "mov %rsp, %rbp\nlea 1(%rdi), %rax\npop %rbp\n.cfi_adjust_cfa_offset -8\nret\n"
        ".cfi_endproc\n.size push_entry, .-push_entry\n");
/* A function made to be patched: five bytes of nop. */
__asm__(".text\n.globl nop_entry\n.type nop_entry, @function\n.p2align 4\n"
        "nop_entry:\n.cfi_startproc\nnopl 0(%rax,%rax,1)\nlea 1(%rdi), %rax\nret\n"
        ".cfi_endproc\n.size nop_entry, .-nop_entry\n");

unsigned long push_entry(unsigned long x);
unsigned long nop_entry(unsigned long x);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

FN unsigned long baseline(unsigned long x) { return x + 1; }

static double run(unsigned long (*volatile *function)(unsigned long), long calls, double rate) {
    unsigned long x = 0;
    double start = now();
    for (long i = 0; i < calls; i++) {
        x = (*function)(x);
        if (rate > 0 && i % 256 == 255)
            while (now() - start < (double)i / rate * 1e9)
                ;
    }
    double took = now() - start;
    if (x != (unsigned long)calls) {
        printf("CORRUPT\n");
        exit(1);
    }
    return took / (double)calls;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    unsigned long (*volatile traced)(unsigned long) =
        strcmp(argv[1], "push") == 0 ? push_entry : nop_entry;
    unsigned long (*volatile bare)(unsigned long) = baseline;
    long calls = number(argc, argv, 2, 0);
    double rate = (double)number(argc, argv, 3, 0);
    double with = run(&traced, calls, rate);
    double without = run(&bare, calls < 1000000 ? calls : 1000000, 0);
    printf("calls %s_entry %ld\nns_per_call %.1f\ncalls_per_second %.0f\n", argv[1], calls,
           with - without, 1e9 / with);
    return 0;
}
