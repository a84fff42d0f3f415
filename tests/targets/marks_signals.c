/* Scopes in signal handlers that interrupt scopes and one another.
 * Usage: marks_signals [SIGNALS=20000] [MICROSECONDS=40 between two of the same signal] */
#include "marks.h"
#include <signal.h>

COUNTER(interrupted);
COUNTER(inner);
COUNTER(handler);
COUNTER(deeper);

static volatile long sink;

FN void deeper(void) {
    CTRACE_FUNCTION;
    COUNT(deeper);
    sink++;
}

FN void handler(int number) {
    CTRACE_FUNCTION;
    COUNT_SHARED(handler);
    (void)number;
}

/* The second one may interrupt the first. */
FN void first_handler(int number) {
    handler(number);
    deeper();
}

FN void inner(void) {
    CTRACE_FUNCTION;
    COUNT(inner);
    sink++;
}

FN void interrupted(void) {
    CTRACE_FUNCTION;
    COUNT(interrupted);
    inner();
}

static timer_t storm(int number, void (*run)(int), long nanoseconds) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = run;
    sigaction(number, &action, NULL);
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = number;
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    struct itimerspec times = {{0, nanoseconds}, {0, nanoseconds}};
    timer_settime(timer, 0, &times, NULL);
    return timer;
}

int main(int argc, char **argv) {
    unsigned long signals = number(argc, argv, 1, 20000);
    long pause = number(argc, argv, 2, 40) * 1000;
    storm(SIGUSR1, first_handler, pause);
    /* Another period, so that they meet at varying places. */
    storm(SIGUSR2, handler, pause * 29 / 20);
    while (__atomic_load_n(&calls_handler, __ATOMIC_RELAXED) < signals)
        interrupted();
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    SHOW(interrupted);
    SHOW(inner);
    SHOW(handler);
    SHOW(deeper);
    return 0;
}
