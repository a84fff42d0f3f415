/* 20,000 functions, f00000 to f19999, called one after the other without end. After each round it naps
 * as long as the round took, from a millisecond on, so that it leaves the processor to others. SIGINT, SIGTERM and
 * SIGHUP are ignored. For each line on stdin it prints `CALLS CPU_NANOSECONDS` of the calling
 * thread. The end of stdin ends it. */
#include "count.h"
#include <pthread.h>
#include <signal.h>
#include <time.h>

#define ONE(n) \
    FN unsigned long f##n(unsigned long x) { return x * 3 + 1; }
#define NAME(n) f##n,
#define TEN(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define HUNDRED(X, n) \
    TEN(X, n##0) TEN(X, n##1) TEN(X, n##2) TEN(X, n##3) TEN(X, n##4) \
    TEN(X, n##5) TEN(X, n##6) TEN(X, n##7) TEN(X, n##8) TEN(X, n##9)
#define THOUSAND(X, n) \
    HUNDRED(X, n##0) HUNDRED(X, n##1) HUNDRED(X, n##2) HUNDRED(X, n##3) HUNDRED(X, n##4) \
    HUNDRED(X, n##5) HUNDRED(X, n##6) HUNDRED(X, n##7) HUNDRED(X, n##8) HUNDRED(X, n##9)
#define TEN_THOUSAND(X, n) \
    THOUSAND(X, n##0) THOUSAND(X, n##1) THOUSAND(X, n##2) THOUSAND(X, n##3) THOUSAND(X, n##4) \
    THOUSAND(X, n##5) THOUSAND(X, n##6) THOUSAND(X, n##7) THOUSAND(X, n##8) THOUSAND(X, n##9)
#define ALL(X) TEN_THOUSAND(X, 0) TEN_THOUSAND(X, 1)

ALL(ONE)

static unsigned long (*const all[])(unsigned long) = {ALL(NAME)};
static const unsigned long count = sizeof all / sizeof *all;

static volatile unsigned long calls;

static unsigned long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

static void *call(void *argument) {
    (void)argument;
    for (unsigned long x = 1;;) {
        const unsigned long begun = now();
        for (unsigned long i = 0; i < count; i++) {
            x = all[i](x);
            KEEP(x);
            calls++;
        }
        unsigned long nap = now() - begun;
        if (nap < 1000000)
            nap = 1000000;
        if (nap > 50000000)
            nap = 50000000;
        nanosleep(&(struct timespec){0, (long)nap}, NULL);
    }
    return NULL;
}

int main(void) {
    pthread_t caller;
    clockid_t clock;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (pthread_create(&caller, NULL, call, NULL) != 0 || pthread_getcpuclockid(caller, &clock) != 0)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (getchar() != EOF) {
        struct timespec t;
        clock_gettime(clock, &t);
        printf("%lu %lu\n", calls, (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec);
    }
    return 0;
}
