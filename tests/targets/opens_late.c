/* Opens a library within a traced call, which then makes others. It prints `ready` before, and waits for SIGUSR1
 * before and after it opens the library.
 * Usage: opens_late LIBRARY [CALLS=50] */
#include "count.h"
#include <dlfcn.h>
#include <signal.h>

COUNTER(opens);
COUNTER(inner);

static sigset_t wake;

FN long inner(long x) {
    COUNT(inner);
    return x + 1;
}

FN long opens(const char *library, long calls) {
    COUNT(opens);
    int signal_number;
    if (!dlopen(library, RTLD_NOW)) return -1;
    sigwait(&wake, &signal_number);
    long sum = 0;
    for (long i = 0; i < calls; i++) sum += inner(sum);
    return sum;
}

int main(int argc, char **argv) {
    int signal_number;
    if (argc < 2) return 2;
    sigemptyset(&wake);
    sigaddset(&wake, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wake, NULL);
    printf("ready\n");
    fflush(stdout);
    sigwait(&wake, &signal_number);
    long sum = opens(argv[1], number(argc, argv, 2, 50));
    printf("sum %ld\n", sum);
    SHOW(opens);
    SHOW(inner);
    return sum < 0;
}
