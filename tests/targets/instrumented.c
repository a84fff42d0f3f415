/* The same function twice, once instrumented by the compiler (-pg), for benchmarks of tracers that
 * use that. Prints `bare_ns` and `traced_ns`: the CPU time of a call, as the median over stretches
 * that take turns. */
#include "count.h"
#include <time.h>

#define PLAIN __attribute__((no_instrument_function))
#define CALLS 10000
#define ROUNDS 100

PLAIN FN unsigned long bare(unsigned long x) {
    KEEP(x);
    return x + 1;
}

FN unsigned long traced(unsigned long x) {
    KEEP(x);
    return x + 1;
}

PLAIN static double on_processor(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

PLAIN static double stretch(unsigned long (*volatile *called)(unsigned long)) {
    unsigned long x = 0;
    double start = on_processor();
    for (int i = 0; i < CALLS; i++)
        x = (*called)(x);
    KEEP(x);
    return (on_processor() - start) / CALLS;
}

PLAIN static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

PLAIN int main(void) {
    static double took[2][ROUNDS];
    unsigned long (*volatile functions[])(unsigned long) = {bare, traced};
    for (int round = 0; round < ROUNDS; round++)
        for (int kind = 0; kind < 2; kind++)
            took[kind][round] = stretch(&functions[kind]);
    for (int kind = 0; kind < 2; kind++)
        qsort(took[kind], ROUNDS, sizeof **took, by_size);
    printf("bare_ns %.3f\ntraced_ns %.3f\n", took[0][ROUNDS / 2], took[1][ROUNDS / 2]);
    return 0;
}
