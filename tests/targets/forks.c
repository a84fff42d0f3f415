/* A server that forks a child for each request.
 * Usage: forks CHILDREN CALLS MICROSECONDS [wait]
 * Each child calls `work` CALLS times and does something else for MICROSECONDS. With `wait` it
 * prints `ready`, and forks CHILDREN more at each SIGUSR1. Its name then counts these rounds
 * (`round 1`). SIGTERM ends it. */
#include "count.h"
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

FN unsigned long work(unsigned long x) { return x * 3 + 1; }

static double cpu_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void child(long calls, long microseconds) {
    unsigned long sum = 0;
    double start = cpu_time();
    for (long i = 0; i < calls; i++)
        sum = work(sum);
    while (cpu_time() - start < (double)microseconds)
        KEEP(sum);
    _exit(sum == 1);
}

static void serve(long children, long calls, long microseconds) {
    for (long i = 0; i < children; i++) {
        pid_t pid = fork();
        if (pid == 0)
            child(calls, microseconds);
        waitpid(pid, NULL, 0);
    }
}

int main(int argc, char **argv) {
    long children = number(argc, argv, 1, 1), calls = number(argc, argv, 2, 1);
    long microseconds = number(argc, argv, 3, 0);
    if (argc > 4) {
        sigset_t wake;
        int signal_number;
        sigemptyset(&wake);
        sigaddset(&wake, SIGUSR1);
        sigaddset(&wake, SIGTERM);
        sigprocmask(SIG_BLOCK, &wake, NULL);
        printf("ready\n");
        fflush(stdout);
        for (int round = 1; sigwait(&wake, &signal_number) == 0 && signal_number == SIGUSR1; round++) {
            char name[16];
            serve(children, calls, microseconds);
            snprintf(name, sizeof name, "round %d", round);
            prctl(PR_SET_NAME, name);
        }
    } else {
        serve(children, calls, microseconds);
    }
    printf("ok\n");
    return 0;
}
