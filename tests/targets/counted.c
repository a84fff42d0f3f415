/* Calls for a tracer that counts them.
 * Usage: counted paths [DEPTH=9]    two functions that call each other in every order
 *        counted bursts [CALLS=2000] calls for about a second, some every ten milliseconds
 *        counted open                `ready`; `holds` calls `works` until stdin ends
 *        counted threads [N=2100]    threads that are there at once, each of which calls `blink` twice
 *        counted fiber [CALLS=1000]  `stays` never leaves its stack; then calls on the first one */
#include "count.h"
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

COUNTER(left);
COUNTER(right);
COUNTER(works);
COUNTER(holds);
COUNTER(blink);
COUNTER(stays);

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

FN unsigned long blink(unsigned long x) {
    x = x * 5 + 1;
    KEEP(x);
    COUNT_SHARED(blink);
    return x;
}

static pthread_barrier_t all;

static void *calls_twice(void *argument) {
    unsigned long x = blink((unsigned long)argument);
    pthread_barrier_wait(&all);
    x = blink(x);
    pthread_barrier_wait(&all);
    return (void *)x;
}

static unsigned long on_threads(long most) {
    pthread_t *threads = calloc((size_t)most, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_barrier_init(&all, NULL, (unsigned)most);
    for (long i = 0; i < most; i++)
        if (pthread_create(&threads[i], &small, calls_twice, (void *)i))
            abort();
    unsigned long sum = 0;
    for (long i = 0; i < most; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (unsigned long)result;
    }
    return sum;
}

static ucontext_t home, away;

FN void stays(void) {
    COUNT(stays);
    swapcontext(&away, &home);
    abort();
}

static void leave_a_call(void) {
    const size_t size = 64 * 1024;
    getcontext(&away);
    away.uc_stack.ss_sp = malloc(size);
    away.uc_stack.ss_size = size;
    makecontext(&away, stays, 0);
    swapcontext(&home, &away);
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
    } else if (strcmp(what, "threads") == 0) {
        sum = on_threads(number(argc, argv, 2, 2100));
    } else if (strcmp(what, "fiber") == 0) {
        long calls = number(argc, argv, 2, 1000);
        leave_a_call();
        for (long i = 0; i < calls; i++)
            sum = works(sum);
    }
    printf("sum %lu\n", sum);
    SHOW(left);
    SHOW(right);
    SHOW(works);
    SHOW(holds);
    SHOW(blink);
    SHOW(stays);
    return 0;
}
