/* Calls for a tracer that counts them.
 * Usage: counted paths [DEPTH=9]    two functions that call each other in every order
 *        counted bursts [CALLS=2000] calls for about a second, some every ten milliseconds
 *        counted open                `ready`; `holds` calls `works` until stdin ends */
#include "count.h"
#include <poll.h>
#include <string.h>
#include <time.h>

COUNTER(left);
COUNTER(right);
COUNTER(works);
COUNTER(holds);

FN unsigned long right(unsigned depth, unsigned long x);

FN unsigned long left(unsigned depth, unsigned long x) {
    COUNT(left);
    if (depth)
        x = left(depth - 1, x) + right(depth - 1, x + 1);
    KEEP(x);
    return x * 3;
}

FN unsigned long right(unsigned depth, unsigned long x) {
    COUNT(right);
    if (depth)
        x = right(depth - 1, x) ^ left(depth - 1, x + 5);
    KEEP(x);
    return x * 7;
}

FN unsigned long works(unsigned long x) {
    COUNT(works);
    for (int i = 0; i < 200; i++) {
        x = x * 31 + 7;
        KEEP(x);
    }
    return x;
}

static void doze(void) {
    struct timespec t = {0, 10 * 1000 * 1000};
    nanosleep(&t, NULL);
}

FN unsigned long holds(unsigned long x) {
    COUNT(holds);
    struct pollfd in = {0, POLLIN, 0};
    while (poll(&in, 1, 1) == 0)
        x = works(x);
    KEEP(x);
    return x;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    unsigned long sum = 0;
    if (strcmp(what, "paths") == 0) {
        unsigned depth = number(argc, argv, 2, 9);
        sum = left(depth, 1) + right(depth, 2);
    } else if (strcmp(what, "bursts") == 0) {
        long calls = number(argc, argv, 2, 2000);
        for (int burst = 0; burst < 100; burst++) {
            for (long i = 0; i < calls / 100; i++)
                sum = works(sum);
            doze();
        }
    } else if (strcmp(what, "open") == 0) {
        puts("ready");
        fflush(stdout);
        sum = holds(1);
    }
    printf("sum %lu\n", sum);
    SHOW(left);
    SHOW(right);
    SHOW(works);
    SHOW(holds);
    return 0;
}
