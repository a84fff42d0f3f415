/* Calls `quick` every millisecond until SIGTERM, and now and then `slow`, which takes 120 ms.
 * `ready` is printed first. */
#include "count.h"
#include <signal.h>
#include <time.h>

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

static void doze(long milliseconds) {
    struct timespec t = {0, milliseconds * 1000000};
    nanosleep(&t, NULL);
}

FN void quick(void) { doze(1); }

FN void slow(void) { doze(120); }

int main(void) {
    signal(SIGTERM, on_signal);
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    for (unsigned i = 1; !stop; i++) {
        quick();
        if (i % 512 == 0)
            slow();
    }
    return 0;
}
