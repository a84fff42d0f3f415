/* A thread stays in a call of `busy` and makes a call of `step` each 20 ms, while another one calls `busy` as often as it
 * can.
 * Usage: shed SECONDS */
#include "count.h"
#include <pthread.h>
#include <time.h>
#include <unistd.h>

COUNTER(step);

static double seconds;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

FN void step(void) {
    COUNT(step);
    usleep(20000);
}

FN void busy(int stays) {
    double start = now();
    while (stays && now() < start + seconds) step();
}

static void *stay(void *unused) {
    busy(1);
    return unused;
}

int main(int argc, char **argv) {
    seconds = (double)number(argc, argv, 1, 10);
    pthread_t thread;
    if (pthread_create(&thread, NULL, stay, NULL) != 0) return 1;
    usleep(200000);
    double start = now();
    while (now() < start + seconds) busy(0);
    pthread_join(thread, NULL);
    SHOW(step);
    return 0;
}
