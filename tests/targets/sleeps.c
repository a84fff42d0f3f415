/* Known durations: the target times its own calls and prints the results. Lines: `time NAME
 * TOTAL_NS` (the sum over the calls, measured around each call), `least_time NAME NS` (the time
 * that the calls sleep), and the same for the time during which any thread is in it. */
#include "count.h"
#include <pthread.h>
#include <time.h>

static unsigned long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ul + t.tv_nsec;
}

static void doze(long milliseconds) {
    struct timespec t = {0, milliseconds * 1000000};
    nanosleep(&t, NULL);
}

static unsigned long time_nap_short, time_nap_long, time_outer, time_hands_on;
static unsigned long overlap_start[2], overlap_end[2];

FN void nap_short(void) { doze(10); }

FN void nap_long(void) { doze(30); }

FN void doze_behind(void) { doze(20); }

/* Ends in a jump to the function that sleeps. */
FN void hands_on(void) { doze_behind(); }

FN void outer(void) {
    unsigned long start = now();
    nap_short();
    time_nap_short += now() - start;
    doze(20);
    start = now();
    nap_long();
    time_nap_long += now() - start;
}

static pthread_barrier_t barrier, within;

/* Two threads are in it at the same time, for as long as both sleep. */
FN void overlap(void) {
    pthread_barrier_wait(&within);
    doze(50);
}

static void *sleeper(void *argument) {
    long index = (long)argument;
    pthread_barrier_wait(&barrier);
    overlap_start[index] = now();
    overlap();
    overlap_end[index] = now();
    return NULL;
}

int main(void) {
    for (int i = 0; i < 5; i++) {
        unsigned long start = now();
        outer();
        time_outer += now() - start;
        start = now();
        hands_on();
        time_hands_on += now() - start;
    }
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_barrier_init(&within, NULL, 2);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, sleeper, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    unsigned long first = overlap_start[0] < overlap_start[1] ? overlap_start[0] : overlap_start[1];
    unsigned long last = overlap_end[0] > overlap_end[1] ? overlap_end[0] : overlap_end[1];
    printf("calls nap_short 5\ncalls nap_long 5\ncalls outer 5\ncalls overlap 2\n");
    printf("calls hands_on 5\ntime hands_on %lu\n", time_hands_on);
    printf("time nap_short %lu\ntime nap_long %lu\ntime outer %lu\n", time_nap_short, time_nap_long,
           time_outer);
    printf("time overlap %lu\n",
           overlap_end[0] - overlap_start[0] + overlap_end[1] - overlap_start[1]);
    printf("active overlap %lu\n", last - first);
    printf("least_time nap_short 50000000\nleast_time nap_long 150000000\n");
    printf("least_time outer 300000000\nleast_time overlap 100000000\n");
    printf("least_active overlap 50000000\n");
    return 0;
}
