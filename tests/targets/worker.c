/* After SIGUSR1 calls `work`, until SIGTERM or CALLS times. It counts the calls in a file that
 * outlives it however it ends. `ready` is printed first.
 * Usage: worker FILE [CALLS_PER_SECOND=0 for full speed] [CALLS=0 without end] */
#include "count.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t go, stop;

static void on_signal(int number) {
    if (number == SIGUSR1)
        go = 1;
    else
        stop = 1;
}

static volatile unsigned long *done;

FN void work(void) { (*done)++; }

static void doze(long nanoseconds) {
    struct timespec t = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    nanosleep(&t, NULL);
}

int main(int argc, char **argv) {
    long rate = number(argc, argv, 2, 0), calls = number(argc, argv, 3, 0);
    int file = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0644) : -1;
    if (file < 0 || ftruncate(file, 4096))
        return 2;
    done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (done == MAP_FAILED)
        return 2;
    signal(SIGUSR1, on_signal);
    signal(SIGTERM, on_signal);
    puts("ready");
    fflush(stdout);
    while (!go && !stop)
        doze(5000000);
    while (!stop && (calls == 0 || *done < (unsigned long)calls)) {
        work();
        if (rate > 0)
            doze(1000000000 / rate);
    }
    while (!stop)
        doze(5000000);
    return 0;
}
