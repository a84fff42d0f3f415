/* Functions that wait in known ways. Lines: `running NAME NS` and `runnable NAME NS`, what the kernel
 * accounts to the calls of the function: processor time, and time in which the thread waited for a
 * processor. */
#define _GNU_SOURCE
#include "count.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 5

struct times {
    unsigned long running, runnable;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static int ends[2];

static void doze(long milliseconds) {
    struct timespec t = {0, milliseconds * 1000000};
    nanosleep(&t, NULL);
}

static unsigned long cpu_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000ul + t.tv_nsec;
}

/* 0 where the kernel does not tell. */
static unsigned long run_delay(void) {
    unsigned long running, runnable = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (!file)
        return 0;
    if (fscanf(file, "%lu %lu", &running, &runnable) != 2)
        runnable = 0;
    fclose(file);
    return runnable;
}

static void measure(struct times *sum, void (*call)(void)) {
    unsigned long runnable = run_delay(), running = cpu_time();
    call();
    sum->running += cpu_time() - running;
    sum->runnable += run_delay() - runnable;
}

static void show(const char *name, struct times times) {
    printf("running %s %lu\nrunnable %s %lu\n", name, times.running, name, times.runnable);
}

FN void naps(void) { doze(20); }

FN void takes_lock(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

FN void reads_pipe(void) {
    char byte;
    if (read(ends[0], &byte, 1) != 1)
        abort();
}

/* As much processor time in each of two threads on one processor. */
FN void works(void) {
    unsigned long until = cpu_time() + 300000000;
    while (cpu_time() < until)
        ;
}

/* Calls what waits, and works a little itself. */
FN void serves(void) {
    naps();
    unsigned long until = cpu_time() + 5000000;
    while (cpu_time() < until)
        ;
}

static void *helper(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        pthread_barrier_wait(&barrier);
        doze(20);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        doze(20);
        if (write(ends[1], "", 1) != 1)
            abort();
    }
    return unused;
}

static void *worker(void *times) {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    pthread_barrier_wait(&barrier);
    measure(times, works);
    return NULL;
}

int main(void) {
    struct times napping = {0}, locking = {0}, reading = {0}, serving = {0}, working[2] = {{0}};
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 2);
    if (pipe(ends))
        return 1;
    for (int i = 0; i < ROUNDS; i++)
        measure(&napping, naps);
    pthread_create(&threads[0], NULL, helper, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        measure(&locking, takes_lock);
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        measure(&reading, reads_pipe);
    }
    pthread_join(threads[0], NULL);
    for (int i = 0; i < ROUNDS; i++)
        measure(&serving, serves);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, &working[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    show("naps", napping);
    show("takes_lock", locking);
    show("reads_pipe", reading);
    show("serves", serving);
    working[0].running += working[1].running;
    working[0].runnable += working[1].runnable;
    show("works", working[0]);
    return 0;
}
