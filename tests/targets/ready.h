/* A target that waits, once it is ready, until the test lets it go on by SIGUSR1. */
#ifndef READY_H
#define READY_H
#include <signal.h>
#include <stdio.h>

static void wait_for_signal(void) {
    sigset_t wake;
    int number;
    sigemptyset(&wake);
    sigaddset(&wake, SIGUSR1);
    sigwait(&wake, &number);
}

static void be_ready(void) {
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wake, NULL);
    puts("ready");
    fflush(stdout);
    wait_for_signal();
}
#endif
