// Takes locks a known number of times, and prints how often. One lock is held until the other thread
// sleeps in its call, and then for a while. In the end, a thread waits for one that is never unlocked.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
enum { ROUNDS = 5, ALONE = 40, NESTED = 7, READS = 12, WRITES = 3 };

static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t alone_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t stuck_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t nested_lock;
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;

static atomic_int held, released, waiter_tid, stuck_tid;
static int queued, conditions, queue_locks;

// Waits until a thread sleeps in a futex.
static void until_it_sleeps(int tid) {
    char path[64], text[8] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    for (;;) {
        FILE *file = fopen(path, "r");
        if (file != NULL && fgets(text, sizeof text, file) != NULL && atoi(text) == SYS_futex) {
            fclose(file);
            return;
        }
        if (file != NULL)
            fclose(file);
        usleep(1000);
    }
}

NOINLINE void holder(int round) {
    pthread_mutex_lock(&held_lock);
    held = round;
    until_it_sleeps(waiter_tid);
    usleep(20000);
    pthread_mutex_unlock(&held_lock);
}

NOINLINE void waiter(int round) {
    while (held < round)
        usleep(1000);
    if (pthread_mutex_trylock(&held_lock) == 0)
        abort();
    pthread_mutex_lock(&held_lock);
    pthread_mutex_unlock(&held_lock);
    released = round;
}

NOINLINE void alone(void) {
    for (int i = 0; i < ALONE; i++) {
        pthread_mutex_lock(&alone_lock);
        pthread_mutex_unlock(&alone_lock);
    }
}

NOINLINE void nested(int depth) {
    pthread_mutex_lock(&nested_lock);
    if (depth > 0)
        nested(depth - 1);
    pthread_mutex_unlock(&nested_lock);
}

NOINLINE void table(void) {
    for (int i = 0; i < READS; i++) {
        pthread_rwlock_rdlock(&table_lock);
        pthread_rwlock_unlock(&table_lock);
    }
    for (int i = 0; i < WRITES; i++) {
        pthread_rwlock_wrlock(&table_lock);
        pthread_rwlock_unlock(&table_lock);
    }
}

NOINLINE void take(void) {
    pthread_mutex_lock(&queue_lock);
    queue_locks++;
    while (queued == 0) {
        conditions++;
        pthread_cond_wait(&queue_filled, &queue_lock);
    }
    queued--;
    pthread_mutex_unlock(&queue_lock);
}

NOINLINE void put(void) {
    until_it_sleeps(waiter_tid);
    pthread_mutex_lock(&queue_lock);
    queue_locks++;
    queued++;
    pthread_cond_signal(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
}

static void *second(void *unused) {
    (void)unused;
    waiter_tid = (int)syscall(SYS_gettid);
    for (int round = 1; round <= ROUNDS; round++)
        waiter(round);
    take();
    return NULL;
}

NOINLINE void waits_for_ever(void) {
    pthread_mutex_lock(&stuck_lock);
    abort();
}

static void *third(void *unused) {
    (void)unused;
    stuck_tid = (int)syscall(SYS_gettid);
    waits_for_ever();
    return NULL;
}

NOINLINE void never_unlocks(void) {
    pthread_t thread;
    pthread_mutex_lock(&stuck_lock);
    pthread_create(&thread, NULL, third, NULL);
    while (stuck_tid == 0)
        usleep(1000);
    until_it_sleeps(stuck_tid);
}

int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&nested_lock, &attributes);
    alone();
    for (int i = 0; i < NESTED; i++)
        nested(2);
    table();
    pthread_t thread;
    pthread_create(&thread, NULL, second, NULL);
    while (waiter_tid == 0)
        usleep(1000);
    for (int round = 1; round <= ROUNDS; round++) {
        holder(round);
        while (released < round)
            usleep(1000);
    }
    put();
    pthread_join(thread, NULL);
    printf("held_lock %d\nalone_lock %d\nnested_lock %d\ntable_lock %d\nqueue_lock %d\n", 2 * ROUNDS,
           ALONE, NESTED, READS + WRITES, queue_locks);
    printf("conditions %d\n", conditions);
    fflush(stdout);
    never_unlocks();
    return 0;
}
