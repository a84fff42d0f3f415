/* Opens a library within a traced call, which then makes others. It prints `ready` before, and waits for SIGUSR1
 * before and after it opens the library.
 * Usage: opens_late LIBRARY [CALLS=50] */
#include "count.h"
#include "ready.h"
#include <dlfcn.h>

COUNTER(opens);
COUNTER(inner);

FN long inner(long x) {
    COUNT(inner);
    return x + 1;
}

FN long opens(const char *library, long calls) {
    COUNT(opens);
    if (!dlopen(library, RTLD_NOW)) return -1;
    wait_for_signal();
    long sum = 0;
    for (long i = 0; i < calls; i++) sum += inner(sum);
    return sum;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    be_ready();
    long sum = opens(argv[1], number(argc, argv, 2, 50));
    printf("sum %ld\n", sum);
    SHOW(opens);
    SHOW(inner);
    return sum < 0;
}
