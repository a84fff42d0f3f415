/* Scopes in many threads.
 * Usage: marks_threads brief THREADS CALLS   8 threads at a time; prints the number of buffers
 *        marks_threads rate THREADS CALLS    at full speed
 *        marks_threads leave THREADS CALLS   pthread_exit and pthread_cancel within a scope */
#include "marks.h"
#include <unistd.h>

COUNTER(brief);
COUNTER(inner);
COUNTER(leaving);
COUNTER(cancelled);

static long calls;

FN void inner(void) {
    CTRACE_SCOPE("inner");
}

FN void brief(void) {
    CTRACE_SCOPE("brief");
    inner();
}

static void *work(void *unused) {
    for (long i = 0; i < calls; i++)
        brief();
    __atomic_fetch_add(&calls_brief, calls, __ATOMIC_RELAXED);
    __atomic_fetch_add(&calls_inner, calls, __ATOMIC_RELAXED);
    return unused;
}

static void *leave(void *unused) {
    work(unused);
    CTRACE_SCOPE("leaving");
    COUNT_SHARED(leaving);
    pthread_exit(NULL);
}

static void *wait_for_cancel(void *barrier) {
    work(barrier);
    CTRACE_SCOPE("cancelled");
    COUNT_SHARED(cancelled);
    pthread_barrier_wait(barrier);
    for (;;)
        pause();
}

static void in_turns(void *(*start)(void *), long threads, long at_once) {
    pthread_t ids[8];
    for (long done = 0; done < threads; done += at_once) {
        for (long i = 0; i < at_once; i++)
            pthread_create(&ids[i], NULL, start, NULL);
        for (long i = 0; i < at_once; i++)
            pthread_join(ids[i], NULL);
    }
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    long threads = number(argc, argv, 2, 8);
    calls = number(argc, argv, 3, 100);
    if (strcmp(argv[1], "leave") == 0) {
        in_turns(leave, threads, 1);
        for (long i = 0; i < threads; i++) {
            pthread_barrier_t barrier;
            pthread_t id;
            pthread_barrier_init(&barrier, NULL, 2);
            pthread_create(&id, NULL, wait_for_cancel, &barrier);
            pthread_barrier_wait(&barrier);
            pthread_cancel(id);
            pthread_join(id, NULL);
        }
        SHOW(leaving);
        SHOW_UNTIMED(leaving, calls_leaving);
        SHOW(cancelled);
        SHOW_UNTIMED(cancelled, calls_cancelled);
    } else {
        in_turns(work, threads, threads < 8 ? threads : 8);
    }
    SHOW(brief);
    SHOW(inner);
    long buffers = 0;
    for (struct ctrace_c1_buffer *buffer = ctrace_c1_list; buffer; buffer = buffer->next)
        buffers++;
    printf("buffers %ld\n", buffers);
    return 0;
}
