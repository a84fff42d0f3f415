/* Waits for SIGUSR1 after `ready`. Then calls functions for about two seconds, with naps whose time it
 * measures, and prints how often each was called. */
#include "count.h"
#include "ready.h"
#include <time.h>

COUNTER(outer);
COUNTER(middle);
COUNTER(leaf);
COUNTER(nap);

static unsigned long slept;

static unsigned long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

FN unsigned long leaf(unsigned long x) {
    COUNT(leaf);
    return x * 2654435761u + 1;
}

FN void nap(void) {
    COUNT(nap);
    struct timespec t = {0, 10000000};
    unsigned long before = now();
    nanosleep(&t, NULL);
    slept += now() - before;
}

FN unsigned long middle(unsigned long x) {
    COUNT(middle);
    unsigned long sum = leaf(x) + leaf(x + 1);
    KEEP(sum);
    return sum;
}

FN unsigned long outer(unsigned long x) {
    COUNT(outer);
    nap();
    unsigned long sum = leaf(x);
    for (unsigned long i = 0; i < 3; i++)
        sum += middle(i);
    KEEP(sum);
    return sum;
}

int main(void) {
    unsigned long sum = 0;
    be_ready();
    for (unsigned long i = 0; i < 200; i++)
        sum += outer(i);
    KEEP(sum);
    SHOW(outer);
    SHOW(middle);
    SHOW(leaf);
    SHOW(nap);
    printf("least_time nap %lu\n", slept);
    return 0;
}
