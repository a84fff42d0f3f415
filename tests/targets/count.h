/* Every target counts the calls of its own functions and prints them as lines `calls NAME N`, so
 * that a test can compare a report with the truth.
 *
 * noipa: no inlining, no clones, no changed calling convention. The function in the source is the
 * function in the file. */
#ifndef COUNT_H
#define COUNT_H
#include <stdio.h>
#include <stdlib.h>

#define FN __attribute__((noipa))
#define COUNTER(name) static unsigned long calls_##name
/* Not atomic, for counts by one thread: the kernel refuses probes on instructions with a `lock`
 * prefix, and this is often a function's first instruction. */
#define COUNT(name) (calls_##name++)
#define COUNT_SHARED(name) __atomic_fetch_add(&calls_##name, 1, __ATOMIC_RELAXED)
#define SHOW(name) printf("calls %s %lu\n", #name, calls_##name)

/* Keeps a compiler from turning a recursion into a loop, or a call into a jump. */
#define KEEP(value) __asm__ volatile("" : "+r"(value))

static inline long number(int argc, char **argv, int index, long fallback) {
    return index < argc ? strtol(argv[index], NULL, 10) : fallback;
}
#endif
