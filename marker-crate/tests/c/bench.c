/* Measures the cost of a scope, against bare functions and two bare rdtsc in the same run. */
#include "support.h"
#include <time.h>

#define NOINLINE __attribute__((noinline))
#define OPAQUE() __asm__ volatile("")

static NOINLINE int leaf_bare(int x) {
    OPAQUE();
    return x + 1;
}
static NOINLINE int leaf_scope(int x) {
    CTRACE_SCOPE("leaf");
    OPAQUE();
    return x + 1;
}
static NOINLINE int leaf_plot(int x) {
    CTRACE_PLOT("plot", x);
    OPAQUE();
    return x + 1;
}
static NOINLINE int leaf_value(int x) {
    CTRACE_SCOPE_VALUE("scope with a value", "x", x);
    OPAQUE();
    return x + 1;
}
static NOINLINE int leaf_text(int x) {
    CTRACE_MESSAGE("a connection took much too long.");
    OPAQUE();
    return x + 1;
}
static NOINLINE int leaf_message(int x) {
    CTRACE_MESSAGE("connection %d took too long", 1000000 + x % 1000); /* 32 bytes */
    OPAQUE();
    return x + 1;
}
static NOINLINE int call_bare(int x) { return leaf_bare(x) + 1; }
static NOINLINE int call_scope(int x) {
    CTRACE_SCOPE("call");
    return leaf_bare(x) + 1;
}
static NOINLINE int two_rdtsc(int x) {
    uint64_t a = __builtin_ia32_rdtsc(), b;
    __asm__ volatile("" ::"r"(a));
    b = __builtin_ia32_rdtsc();
    __asm__ volatile("" ::"r"(b));
    return x + 1;
}

enum { CALLS = 10000, ROUNDS = 1501 };
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
static double measure(int (*f)(int)) {
    double start = now();
    int sum = 0;
    for (int i = 0; i < CALLS; i++) sum = f(sum);
    __asm__ volatile("" ::"r"(sum));
    return (now() - start) / CALLS;
}
static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

/* Prints the medians of `f`, of `base`, and of f - base and f / base of each round. */
static void versus(const char *what, int (*f)(int), const char *to, int (*base)(int)) {
    static double a[ROUNDS], b[ROUNDS], difference[ROUNDS], ratio[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        a[i] = measure(f), b[i] = measure(base);
        difference[i] = a[i] - b[i], ratio[i] = a[i] / b[i];
    }
    double d = median(difference), r = median(ratio);
    printf("%-14s %6.2f ns, %-12s %6.2f ns: %+.2f ns, ratio %.2f\n", what, median(a), to, median(b), d, r);
}

int main(void) {
    versus("dormant leaf", leaf_scope, "bare", leaf_bare);
    versus("dormant caller", call_scope, "bare", call_bare);
    versus("dormant plot", leaf_plot, "bare", leaf_bare);
    versus("dormant message", leaf_message, "bare", leaf_bare);
    switch_to(NULL, 1);
    versus("active leaf", leaf_scope, "two rdtsc", two_rdtsc);
    versus("active caller", call_scope, "two rdtsc", two_rdtsc);
    versus("active value", leaf_value, "two rdtsc", two_rdtsc);
    versus("active plot", leaf_plot, "two rdtsc", two_rdtsc);
    versus("active literal", leaf_text, "two rdtsc", two_rdtsc);
    versus("active message", leaf_message, "two rdtsc", two_rdtsc);
    return 0;
}
