/* Executes itself within a scope and in mid-batch.
 * Usage: marks_exec self|thread TIMES [MILLISECONDS=0 to wait before]; it adds more for itself */
#include "marks.h"
#include <unistd.h>

COUNTER(work);
COUNTER(waiting);
COUNTER(becoming);

static char **arguments;
static long times, wait_before;
static pthread_barrier_t barrier;

FN void work(void) {
    CTRACE_FUNCTION;
    COUNT(work);
}

static void *become(void *unused) {
    for (int i = 0; i < 100; i++)
        work();
    CTRACE_SCOPE("becoming");
    COUNT(becoming);
    marks_doze(wait_before);
    char left[32], work[32], waiting[32], becoming[32];
    snprintf(left, sizeof left, "%ld", times - 1);
    snprintf(work, sizeof work, "%lu", calls_work);
    snprintf(waiting, sizeof waiting, "%lu", calls_waiting);
    snprintf(becoming, sizeof becoming, "%lu", calls_becoming);
    execl("/proc/self/exe", arguments[0], arguments[1], left, arguments[3], work, waiting,
          becoming, (char *)NULL);
    return unused;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    arguments = argv;
    times = number(argc, argv, 2, 0);
    wait_before = number(argc, argv, 3, 0);
    calls_work = number(argc, argv, 4, 0);
    calls_waiting = number(argc, argv, 5, 0);
    calls_becoming = number(argc, argv, 6, 0);
    for (int i = 0; i < 37; i++)
        work();
    if (times == 0) {
        SHOW(work);
        SHOW(waiting);
        SHOW_UNTIMED(waiting, calls_waiting);
        SHOW(becoming);
        SHOW_UNTIMED(becoming, calls_becoming);
        return 0;
    }
    if (strcmp(argv[1], "self") == 0) {
        become(NULL);
        return 3;
    }
    CTRACE_SCOPE("waiting");
    COUNT(waiting);
    pthread_t id;
    pthread_create(&id, NULL, become, NULL);
    pthread_join(id, NULL);
    return 3;
}
