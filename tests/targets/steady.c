/* Calls `request` CALLS times every ten milliseconds, until it is killed. With `served` it calls a
 * function with a scope of this name instead. `ready` is printed first.
 * Usage: steady CALLS [served] */
#include "count.h"
#include "ctrace.h"
#include <time.h>

FN long part(long x) { return x * 3; }

/* Keeps a value across a call, so it begins with a push, like most functions. */
FN long request(long x) { return part(x) ^ x; }

FN long scoped(long x) {
    CTRACE_SCOPE("served");
    return part(x) ^ x;
}

int main(int argc, char **argv) {
    long calls = number(argc, argv, 1, 1), x = 1;
    long (*called)(long) = argc > 2 ? scoped : request;
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct timespec t = {0, 10000000};
        nanosleep(&t, NULL);
        for (long i = 0; i < calls; i++)
            x = called(x);
        KEEP(x);
    }
}
