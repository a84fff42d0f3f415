/* Threads with calls that stay open until SIGUSR1, and then are unwound by an exception: the main
 * thread and OTHERS more. `fork`: a child makes the calls, within those of its parent.
 * Usage: open_calls [OTHERS] [fork] */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#define FN extern "C" __attribute__((noinline))

static volatile sig_atomic_t goes_on;
static bool forks;

static void go_on(int) { goes_on = 1; }

static void go_on_in_child() {
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return;
    }
    int status;
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
}

FN int innermost(int depth) {
    if (forks) go_on_in_child();
    while (!goes_on) usleep(20000);
    if (depth == 2) throw std::runtime_error("unwound");
    return depth;
}

FN int middle(int depth) {
    int result = innermost(depth + 1);
    asm volatile("");
    return result + 1;
}

FN int outer(int depth) {
    try {
        return middle(depth + 1) + 2;
    } catch (std::exception &) {
        return 7;
    }
}

static void *thread(void *) { return (void *)(long)outer(0); }

int main(int argc, char **argv) {
    std::vector<pthread_t> others(argc > 1 ? atoi(argv[1]) : 1);
    forks = argc > 2;
    signal(SIGUSR1, go_on);
    puts("ready");
    fflush(stdout);
    /* ctrace attaches meanwhile. */
    char line[8];
    if (!fgets(line, sizeof line, stdin)) return 1;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (pthread_t &other : others)
        if (pthread_create(&other, &small, thread, nullptr)) return 2;
    long caught = outer(0);
    for (pthread_t other : others) {
        void *theirs;
        pthread_join(other, &theirs);
        caught += (long)theirs;
    }
    printf("caught %ld\n", caught);
}
