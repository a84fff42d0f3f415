/* Times its own calls of one function, for benchmarks.
 * Usage: cost push|nop|nop5 CALLS [CALLS_PER_SECOND=0 for as many as possible]
 * Prints `calls NAME N`, `ns_per_call X` and `calls_per_second X`. The time of a call is the median
 * over stretches of calls, so that other programs' turns on the CPU do not count. The loop's own
 * cost is subtracted. The rate is that of the whole run. */
#include "count.h"
#include <string.h>
#include <time.h>

/* A function's start from compilers with CET: endbr64; push %rbp. */
__asm__(".text\n.globl push_entry\n.type push_entry, @function\n.p2align 4\n"
        "push_entry:\n.cfi_startproc\nendbr64\npush %rbp\n.cfi_adjust_cfa_offset 8\n"
        "mov %rsp, %rbp\nlea 1(%rdi), %rax\npop %rbp\n.cfi_adjust_cfa_offset -8\nret\n"
        ".cfi_endproc\n.size push_entry, .-push_entry\n");
/* A marker function: a nop of one byte. */
__asm__(".text\n.globl nop_entry\n.type nop_entry, @function\n.p2align 4\n"
        "nop_entry:\n.cfi_startproc\nnop\nlea 1(%rdi), %rax\nret\n"
        ".cfi_endproc\n.size nop_entry, .-nop_entry\n");
/* A patchable function: a nop of five bytes. It is spelt out because the assembler drops a
 * displacement of 0 and makes four bytes of `nopl 0(%rax,%rax,1)`. */
__asm__(".text\n.globl nop5_entry\n.type nop5_entry, @function\n.p2align 4\n"
        "nop5_entry:\n.cfi_startproc\n.byte 0x0f, 0x1f, 0x44, 0, 0\npush %rbp\n"
        ".cfi_adjust_cfa_offset 8\nlea 1(%rdi), %rax\npop %rbp\n.cfi_adjust_cfa_offset -8\nret\n"
        ".cfi_endproc\n.size nop5_entry, .-nop5_entry\n");

unsigned long push_entry(unsigned long x);
unsigned long nop_entry(unsigned long x);
unsigned long nop5_entry(unsigned long x);

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

FN unsigned long baseline(unsigned long x) { return x + 1; }

#define STRETCH 256
#define STRETCHES 65536

static double took[STRETCHES];

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns nanoseconds per call, and in `*whole` those of all calls together. */
static double run(unsigned long (*volatile *function)(unsigned long), long calls, double rate,
                  double *whole) {
    unsigned long x = 0;
    long stretches = 0;
    double start = now(), before = start;
    for (long i = 0; i < calls; i++) {
        x = (*function)(x);
        if (i % STRETCH != STRETCH - 1)
            continue;
        took[stretches++ % STRETCHES] = now() - before;
        while (rate > 0 && now() - start < (double)i / rate * 1e9)
            ;
        before = now();
    }
    *whole = now() - start;
    if (x != (unsigned long)calls) {
        printf("CORRUPT\n");
        exit(1);
    }
    if (stretches == 0)
        return *whole / (double)calls;
    if (stretches > STRETCHES)
        stretches = STRETCHES;
    qsort(took, (size_t)stretches, sizeof *took, by_size);
    return took[stretches / 2] / STRETCH;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    unsigned long (*volatile traced)(unsigned long) =
        strcmp(argv[1], "push") == 0   ? push_entry
        : strcmp(argv[1], "nop5") == 0 ? nop5_entry
                                       : nop_entry;
    unsigned long (*volatile bare)(unsigned long) = baseline;
    long calls = number(argc, argv, 2, 0);
    double rate = (double)number(argc, argv, 3, 0);
    double whole, unused;
    double with = run(&traced, calls, rate, &whole);
    double without = run(&bare, calls < 1000000 ? calls : 1000000, 0, &unused);
    printf("calls %s_entry %ld\nns_per_call %.1f\ncalls_per_second %.0f\n", argv[1], calls,
           with - without, (double)calls / whole * 1e9);
    return 0;
}
