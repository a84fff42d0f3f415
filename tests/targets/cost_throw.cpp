// A program with exceptions, for benchmarks. Throws through three frames, then times calls of another
// function, through which nothing is thrown.
// Usage: cost_throw CALLS THROWS. Prints `ready`, waits for a line, prints `ns_per_call X`,
// `ns_per_throw X`, `sum X`, its calls and `done`, and waits for the end of its input. Times are medians
// over stretches of calls, so that other programs' turns on the CPU do not count.
#include "count.h"
#include <algorithm>
#include <stdexcept>
#include <time.h>
#include <vector>

COUNTER(thrower);
COUNTER(passer);
COUNTER(catcher);
COUNTER(plain);

static double now() {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
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

FN long inner(long x) { return x * 7; }

/* It calls another function and so begins with a push, as most functions do. */
FN long plain(long x) {
    COUNT(plain);
    long below = inner(x);
    KEEP(below);
    return below + 1;
}

/* Returns the nanoseconds of a call. */
template <typename Function>
static double timed(long calls, long stretch, Function function) {
    std::vector<double> took;
    for (long i = 0; i < calls;) {
        double begun = now();
        long end = std::min(i + stretch, calls), length = end - i;
        for (; i < end; i++)
            function(i);
        took.push_back((now() - begun) / (double)length);
    }
    std::sort(took.begin(), took.end());
    return took[took.size() / 2];
}

int main(int argc, char **argv) {
    long calls = number(argc, argv, 1, 1), throws = number(argc, argv, 2, 1);
    long sum = 0;
    puts("ready");
    fflush(stdout);
    if (getchar() != 'g')
        return 1;
    double throwing = timed(throws, 1, [&](long i) { sum += catcher(i); });
    double calling = timed(calls, 256, [&](long i) { sum ^= plain(i); });
    printf("ns_per_call %.1f\nns_per_throw %.1f\nsum %ld\n", calling, throwing, sum);
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
