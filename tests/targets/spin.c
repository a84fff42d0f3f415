/* Runs at full speed until SIGTERM (or for SECONDS), then checks its own arithmetic. Prints `ready`
 * first, and `ok ITERATIONS` at the end. A wrong result prints `CORRUPT` and exits with 1.
 * Usage: spin [SECONDS=0 without end] [CALLS_PER_SECOND=0 for full speed] [THREADS=1] */
#include "count.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

FN unsigned long mix(unsigned long x) { return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ul; }

FN unsigned long step(unsigned long x, double *y) {
    *y = *y * 0.5 + (double)(x & 0xff);
    return mix(x) + 0x9e3779b97f4a7c15ul;
}

static inline unsigned long step_inline(unsigned long x, double *y) {
    *y = *y * 0.5 + (double)(x & 0xff);
    return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ul + 0x9e3779b97f4a7c15ul;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds, rate;

struct result {
    unsigned long iterations;
    int corrupt;
};

static void *spin(void *argument) {
    struct result *result = argument;
    unsigned long x = 1, iterations = 0;
    double y = 0, start = now();
    while (!stop) {
        x = step(x, &y);
        iterations++;
        if (rate > 0) {
            double ahead = start + (double)iterations / rate - now();
            if (ahead > 0) {
                struct timespec t = {(time_t)ahead, (long)((ahead - (double)(time_t)ahead) * 1e9)};
                nanosleep(&t, NULL);
            }
        }
        if (seconds > 0 && (rate > 0 || iterations % 64 == 0) && now() - start >= seconds)
            break;
    }
    unsigned long check_x = 1;
    double check_y = 0;
    for (unsigned long i = 0; i < iterations; i++)
        check_x = step_inline(check_x, &check_y);
    result->iterations = iterations;
    result->corrupt = check_x != x || check_y != y;
    return NULL;
}

int main(int argc, char **argv) {
    seconds = (double)number(argc, argv, 1, 0);
    rate = (double)number(argc, argv, 2, 0);
    long threads = number(argc, argv, 3, 1);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGTERM, &action, NULL);
    printf("ready\n");
    fflush(stdout);
    struct result results[64];
    pthread_t ids[64];
    if (threads < 1 || threads > 64)
        return 2;
    for (long i = 1; i < threads; i++)
        pthread_create(&ids[i], NULL, spin, &results[i]);
    spin(&results[0]);
    for (long i = 1; i < threads; i++)
        pthread_join(ids[i], NULL);
    unsigned long iterations = 0;
    for (long i = 0; i < threads; i++) {
        iterations += results[i].iterations;
        if (results[i].corrupt) {
            printf("CORRUPT\n");
            return 1;
        }
    }
    printf("ok %lu\ncalls step %lu\ncalls mix %lu\n", iterations, iterations, iterations);
    return 0;
}
