// A program with exceptions, for benchmarks. Throws through four frames, then times calls of another
// function, through which nothing is thrown.
// Usage: cost_throw CALLS THROWS. Prints `ready`, waits for a line, prints `ns_per_call X` and
// `ns_per_throw X` in CPU time, `calls plain N`, `sum X` and `done`, and waits for the end of its input.
#include "count.h"
#include <stdexcept>
#include <time.h>

COUNTER(thrower);
COUNTER(passer);
COUNTER(catcher);
COUNTER(plain);

static double now() {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

FN long thrower(long x) {
    COUNT(thrower);
    throw std::runtime_error(x % 2 == 0 ? "even" : "odd number");
}

FN long passer(int depth, long x) {
    COUNT(passer);
    long below = depth == 0 ? thrower(x) : passer(depth - 1, x);
    KEEP(below);
    return below + 1;
}

FN long catcher(long x) {
    COUNT(catcher);
    try {
        return passer(1, x);
    } catch (const std::exception &error) {
        return error.what()[0];
    }
}

FN long plain(long x) {
    COUNT(plain);
    return x * 7 + 1;
}

int main(int argc, char **argv) {
    long calls = number(argc, argv, 1, 1), throws = number(argc, argv, 2, 1);
    long sum = 0;
    puts("ready");
    fflush(stdout);
    if (getchar() != 'g')
        return 1;
    double begun = now();
    for (long i = 0; i < throws; i++)
        sum += catcher(i);
    double thrown = now();
    for (long i = 0; i < calls; i++)
        sum ^= plain(i);
    double called = now();
    for (long i = 0; i < throws; i++)
        sum += catcher(i);
    double end = now();
    printf("ns_per_call %.1f\nns_per_throw %.1f\nsum %ld\n", (called - thrown) / (double)calls,
           (end - called + thrown - begun) / (double)(2 * throws), sum);
    SHOW(thrower);
    SHOW(passer);
    SHOW(catcher);
    SHOW(plain);
    puts("done");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
