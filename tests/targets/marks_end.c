/* Ends within a scope and in mid-batch, while two other threads wait within theirs.
 * Usage: marks_end exit|_exit|segv|abort|kill [CALLS=1000] [MILLISECONDS=0 to wait before] */
#include "marks.h"
#include <signal.h>
#include <unistd.h>

COUNTER(step);
COUNTER(held);
COUNTER(outer);
COUNTER(inner);
COUNTER(last);

static long calls;
static pthread_barrier_t barrier;
static volatile int *volatile nowhere = NULL;

FN void step(void) {
    CTRACE_FUNCTION;
    COUNT_SHARED(step);
}

static void *hold(void *unused) {
    for (long i = 0; i < calls; i++)
        step();
    CTRACE_SCOPE("held");
    COUNT_SHARED(held);
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
    return unused;
}

FN void inner(void) {
    CTRACE_FUNCTION;
    COUNT(inner);
}

FN void outer(void) {
    CTRACE_FUNCTION;
    COUNT(outer);
    inner();
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    calls = number(argc, argv, 2, 1000);
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, hold, NULL);
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < calls; i++)
        outer();
    CTRACE_SCOPE("last");
    COUNT(last);
    SHOW(step);
    SHOW(held);
    SHOW_UNTIMED(held, 2);
    SHOW(outer);
    SHOW(inner);
    SHOW(last);
    SHOW_UNTIMED(last, 1);
    fflush(stdout);
    marks_doze(number(argc, argv, 3, 0));
    if (strcmp(argv[1], "exit") == 0)
        exit(7);
    else if (strcmp(argv[1], "_exit") == 0)
        _exit(7);
    else if (strcmp(argv[1], "segv") == 0)
        *nowhere = 1;
    else if (strcmp(argv[1], "abort") == 0)
        abort();
    else if (strcmp(argv[1], "kill") == 0)
        kill(getpid(), SIGKILL);
    return 2;
}
