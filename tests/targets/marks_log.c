/* Writes messages, values of a plot and frame marks in CHILDREN processes with two threads each, which
 * then end by `exit`, `abort` or `kill`.
 * Usage: marks_log MESSAGES CHILDREN END [MILLISECONDS=0 to wait before] */
#include "marks.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static long messages;

FN void parse(long number) {
    CTRACE_SCOPE("parse");
    if (number % 5 == 4)
        CTRACE_MESSAGE_IN(net, CTRACE_WARN, "miss for %ld", number);
    else
        CTRACE_MESSAGE("loaded %ld files", number);
}

static void *talk(void *unused) {
    for (long i = 0; i < messages; i++) {
        CTRACE_SCOPE("request");
        parse(i);
        CTRACE_PLOT_UNIT("queue", "jobs", i);
        CTRACE_FRAME("turn");
    }
    return unused;
}

static void child(const char *end, long milliseconds) {
    pthread_t other;
    pthread_create(&other, NULL, talk, NULL);
    talk(NULL);
    pthread_join(other, NULL);
    marks_doze(milliseconds);
    if (strcmp(end, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(end, "abort") == 0)
        abort();
    exit(0);
}

int main(int argc, char **argv) {
    messages = number(argc, argv, 1, 10);
    for (long i = number(argc, argv, 2, 1); i > 0; i--)
        if (fork() == 0)
            child(argc > 3 ? argv[3] : "exit", number(argc, argv, 4, 0));
    while (wait(NULL) > 0)
        ;
    CTRACE_MESSAGE("bye");
    return 0;
}
