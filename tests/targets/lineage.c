/* Calls `work` a hundred times a second. After SIGUSR1 a descendant does so, too: a child, or with
 * an argument a grandchild whose parent ends at once. `ready` is printed first. */
#include "count.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t asked;

static void on_signal(int number) {
    (void)number;
    asked = 1;
}

FN void work(void) {
    struct timespec t = {0, 10000000};
    nanosleep(&t, NULL);
}

int main(int argc, char **argv) {
    (void)argv;
    signal(SIGUSR1, on_signal);
    signal(SIGCHLD, SIG_IGN);
    puts("ready");
    fflush(stdout);
    int is_first = 1;
    for (;;) {
        work();
        if (!asked || !is_first)
            continue;
        is_first = 0;
        if (fork() == 0) {
            if (argc > 1 && fork() != 0)
                _exit(0);
            /* A test that fails leaves nothing behind. */
            alarm(60);
        }
    }
}
