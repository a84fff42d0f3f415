/* Threads that sleep for most of their lives, one that works for most of its own, and the only function that
 * works in several of them. Times of work are those of the thread's own clock. */
#include "count.h"
#include <pthread.h>
#include <time.h>

COUNTER(work);

static void nap(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&time, &time))
        ;
}

static long used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/* Inline wherever it is used: the function around it works itself. */
static inline __attribute__((always_inline)) void burn(long ms) {
    long end = used() + 1000 * ms;
    while (used() < end)
        ;
}

FN void work(void) {
    COUNT_SHARED(work);
    burn(2);
}

/* It sleeps as well, so its thread has given up its processor. */
FN void *burner(void *argument) {
    nap(50);
    burn(600);
    KEEP(argument);
    return argument;
}

FN void *once(void *argument) {
    nap(3000);
    KEEP(argument);
    return argument;
}

FN void *ticker(void *argument) {
    for (int i = 0; i < 20; i++)
        nap(100);
    KEEP(argument);
    return argument;
}

FN void *waiter(void *argument) {
    for (int i = 0; i < 20; i++) {
        nap(100);
        work();
    }
    KEEP(argument);
    return argument;
}

int main(void) {
    void *(*functions[])(void *) = {burner, once, ticker, waiter};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, functions[i], NULL))
            abort();
    for (int i = 0; i < 40; i++)
        work();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    /* Before Linux 6.16 the kernel reports the end of a thread after those who wait for it have gone on. */
    nap(500);
    SHOW(work);
    printf("calls burner 1\ncalls once 1\ncalls ticker 1\ncalls waiter 1\n");
    return 0;
}
