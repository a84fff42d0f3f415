/* Threads that end each other's waits, each from a function of a known name. None of these ends with a jump. */
#define _GNU_SOURCE
#include "count.h"
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define LOCK_ROUNDS 5
#define PIPE_ROUNDS 7
#define CONDITION_ROUNDS 9
#define NAP_ROUNDS 11

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static int ends[2];
static int told;

static void doze(long milliseconds) {
    struct timespec t = {0, milliseconds * 1000000};
    nanosleep(&t, NULL);
}

/* Only a timer ends its waits. */
FN void naps(void) { doze(3); }

FN void takes_lock(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

FN void gives_lock(void) {
    int error = pthread_mutex_unlock(&lock);
    KEEP(error);
}

FN void reads_pipe(void) {
    char byte;
    if (read(ends[0], &byte, 1) != 1)
        abort();
}

FN void writes_pipe(void) {
    if (write(ends[1], "", 1) != 1)
        abort();
}

FN void awaits(int number) {
    pthread_mutex_lock(&lock);
    while (told <= number)
        pthread_cond_wait(&condition, &lock);
    pthread_mutex_unlock(&lock);
}

/* Outside of the lock, so that nobody waits for the lock instead. */
FN void tells(void) {
    pthread_mutex_lock(&lock);
    told++;
    pthread_mutex_unlock(&lock);
    int error = pthread_cond_signal(&condition);
    KEEP(error);
}

static void *helper(void *unused) {
    pthread_setname_np(pthread_self(), "helper");
    for (int i = 0; i < LOCK_ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        pthread_barrier_wait(&barrier);
        doze(30);
        gives_lock();
        pthread_barrier_wait(&barrier);
    }
    pthread_setname_np(pthread_self(), "writer");
    for (int i = 0; i < PIPE_ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        doze(20);
        writes_pipe();
    }
    pthread_setname_np(pthread_self(), "teller");
    for (int i = 0; i < CONDITION_ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        doze(10);
        tells();
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    if (pipe(ends))
        return 1;
    pthread_create(&thread, NULL, helper, NULL);
    for (int i = 0; i < LOCK_ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        takes_lock();
        pthread_barrier_wait(&barrier);
    }
    for (int i = 0; i < PIPE_ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        reads_pipe();
    }
    for (int i = 0; i < CONDITION_ROUNDS; i++) {
        pthread_barrier_wait(&barrier);
        awaits(i);
    }
    pthread_join(thread, NULL);
    for (int i = 0; i < NAP_ROUNDS; i++)
        naps();
    return 0;
}
