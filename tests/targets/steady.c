/* Calls `request` so many times every ten milliseconds, until it is killed. `ready` is printed first.
 * Usage: steady CALLS */
#include "count.h"
#include <time.h>

FN long part(long x) { return x * 3; }

/* Keeps a value over a call: it begins with a push, as most functions do. */
FN long request(long x) { return part(x) ^ x; }

int main(int argc, char **argv) {
    long calls = number(argc, argv, 1, 1), x = 1;
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct timespec t = {0, 10000000};
        nanosleep(&t, NULL);
        for (long i = 0; i < calls; i++)
            x = request(x);
        KEEP(x);
    }
}
