/* Eight threads at work, then thousands that come and go.
 * Usage: threads [CALLS_PER_THREAD=20000] [SHORT_LIVED=2000] */
#include "count.h"
#include <pthread.h>

COUNTER(work);
COUNTER(inner);
COUNTER(blink);

FN unsigned long inner(unsigned long x) {
    x = x * 31 + 7;
    KEEP(x);
    COUNT_SHARED(inner);
    return x;
}

FN unsigned long work(unsigned long x) {
    x = inner(x) + inner(x + 1);
    KEEP(x);
    COUNT_SHARED(work);
    return x;
}

FN unsigned long blink(unsigned long x) {
    x = x + 1;
    KEEP(x);
    COUNT_SHARED(blink);
    return x;
}

static long per_thread;
static unsigned long total;

static void *worker(void *argument) {
    unsigned long sum = 0;
    for (long i = 0; i < per_thread; i++)
        sum += work((unsigned long)argument + i);
    __atomic_fetch_add(&total, sum, __ATOMIC_RELAXED);
    return NULL;
}

static void *brief(void *argument) {
    __atomic_fetch_add(&total, blink((unsigned long)argument), __ATOMIC_RELAXED);
    return NULL;
}

int main(int argc, char **argv) {
    per_thread = number(argc, argv, 1, 20000);
    long short_lived = number(argc, argv, 2, 2000);
    pthread_t threads[8];
    for (long i = 0; i < 8; i++)
        if (pthread_create(&threads[i], NULL, worker, (void *)(i * 1000)))
            abort();
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    for (long i = 0; i < short_lived; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, brief, (void *)i))
            abort();
        pthread_join(thread, NULL);
    }
    printf("total %lu\n", total);
    SHOW(work);
    SHOW(inner);
    SHOW(blink);
    return 0;
}
