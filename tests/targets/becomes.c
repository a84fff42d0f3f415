/* Calls `work`, then becomes another program.
 * Usage: becomes hot PATH [ARG...]    calls it at full speed until SIGUSR1
 *        becomes CALLS PATH [ARG...]  waits for SIGUSR1, then calls it CALLS times on one CPU */
#include "count.h"
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

COUNTER(work);

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

FN unsigned long work(unsigned long x) {
    COUNT(work);
    return x * 3 + 1;
}

static void stay_on_this_processor(void) {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    sched_setaffinity(0, sizeof here, &here);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    unsigned long sum = 0;
    signal(SIGUSR1, on_signal);
    if (strcmp(argv[1], "hot") == 0) {
        while (!stop)
            sum = work(sum);
    } else {
        /* Blocked, so that the sender sees when to send it; sigwait would unblock it. */
        sigset_t wake, pending;
        sigemptyset(&wake);
        sigaddset(&wake, SIGUSR1);
        sigprocmask(SIG_BLOCK, &wake, NULL);
        while (sigpending(&pending) == 0 && !sigismember(&pending, SIGUSR1))
            usleep(1000);
        stay_on_this_processor();
        sigprocmask(SIG_UNBLOCK, &wake, NULL);
        for (long i = number(argc, argv, 1, 0); i > 0; i--)
            sum = work(sum);
    }
    SHOW(work);
    fflush(stdout);
    execv(argv[2], argv + 2);
    return 3;
}
