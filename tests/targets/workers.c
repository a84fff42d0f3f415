/* Forks three workers, the first of which forks another. All wait for the end of standard input. Then
 * the parent calls `work` 50 times, and the workers, whose threads are named `shelf`, 100, 200, 300 and
 * 400 times. `ready` is printed first. */
#include "count.h"
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

FN unsigned long work(unsigned long x) { return x * 3 + 1; }

static void calls(int times) {
    char byte;
    unsigned long sum = 1;
    while (read(0, &byte, 1) > 0)
        ;
    for (int i = 0; i < times; i++)
        sum = work(sum);
    KEEP(sum);
}

static void worker(int number, int told) {
    prctl(PR_SET_NAME, "shelf");
    if (number == 0) {
        if (fork() == 0) {
            calls(400);
            _exit(0);
        }
        if (write(told, "x", 1) != 1)
            _exit(1);
    }
    calls(100 * (number + 1));
    while (wait(NULL) > 0)
        ;
    _exit(0);
}

int main(void) {
    int pipes[2];
    char byte;
    if (pipe(pipes) != 0)
        return 1;
    for (int number = 0; number < 3; number++)
        if (fork() == 0)
            worker(number, pipes[1]);
    /* All of them exist by then. */
    if (read(pipes[0], &byte, 1) != 1)
        return 1;
    puts("ready");
    fflush(stdout);
    calls(50);
    while (wait(NULL) > 0)
        ;
    return 0;
}
