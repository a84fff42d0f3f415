/* Forks within a scope and in mid-batch. The children's counts are printed if they are followed.
 * Usage: marks_fork fork|vfork ROUNDS alone|followed; marks_fork child */
#include "marks.h"
#include <sys/wait.h>
#include <unistd.h>

COUNTER(parent);
COUNTER(around);
COUNTER(spawner);
COUNTER(child);

FN void parent(void) {
    CTRACE_FUNCTION;
    COUNT(parent);
}

FN void child(void) {
    CTRACE_FUNCTION;
}

static const int in_child = 50;

/* Returns in the child as well. */
FN pid_t around(void) {
    CTRACE_FUNCTION;
    COUNT(around);
    pid_t pid = fork();
    int status = 0;
    if (pid > 0 && (waitpid(pid, &status, 0) != pid || status != 0)) {
        printf("a child ended with status %x\n", status);
        exit(4);
    }
    return pid;
}

FN void spawner(char **argv) {
    CTRACE_FUNCTION;
    COUNT(spawner);
    pid_t pid = vfork();
    if (pid == 0) {
        execl("/proc/self/exe", argv[0], "child", (char *)NULL);
        _exit(3);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0) {
        printf("a child ended with status %x\n", status);
        exit(4);
    }
}

int main(int argc, char **argv) {
    if (argc == 2) {
        for (int i = 0; i < in_child; i++)
            child();
        return 0;
    }
    if (argc < 4)
        return 2;
    int forks = strcmp(argv[1], "fork") == 0, followed = strcmp(argv[3], "followed") == 0;
    long rounds = number(argc, argv, 2, 5);
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < 100; i++)
            parent();
        if (!forks) {
            spawner(argv);
        } else if (around() == 0) {
            for (int i = 0; i < in_child; i++)
                child();
            exit(0);
        }
    }
    SHOW(parent);
    SHOW(around);
    SHOW(spawner);
    calls_child = followed ? rounds * in_child : 0;
    SHOW(child);
    SHOW_HEADLESS(around, followed && forks ? rounds : 0);
    return 0;
}
