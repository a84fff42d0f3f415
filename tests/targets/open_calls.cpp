/* Two threads with calls that stay open until SIGUSR1, and then are unwound by an exception.
 * Usage: open_calls */
#include <csignal>
#include <cstdio>
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>

#define FN extern "C" __attribute__((noinline))

static volatile sig_atomic_t goes_on;

static void go_on(int) { goes_on = 1; }

FN int innermost(int depth) {
    while (!goes_on) usleep(1000);
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

int main() {
    signal(SIGUSR1, go_on);
    puts("ready");
    fflush(stdout);
    /* ctrace attaches meanwhile. */
    char line[8];
    if (!fgets(line, sizeof line, stdin)) return 1;
    pthread_t other;
    pthread_create(&other, nullptr, thread, nullptr);
    int mine = outer(0);
    void *theirs;
    pthread_join(other, &theirs);
    printf("caught %d %ld\n", mine, (long)theirs);
}
