/* Calls into a library opened at run time. It prints `ready` when the library is open; with `wait`
 * it then waits for SIGUSR1. With `late` it prints `ready` before it opens the library, and waits
 * for SIGUSR1 before and after. Usage: dl LIBRARY [CALLS=1000] [wait|late] */
#include "count.h"
#include <dlfcn.h>
#include <signal.h>
#include <string.h>

COUNTER(host_work);

FN long host_work(long x) {
    COUNT(host_work);
    return x + 1;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wake, NULL);
    int signal_number, late = argc > 3 && strcmp(argv[3], "late") == 0;
    if (late) {
        printf("ready\n");
        fflush(stdout);
        sigwait(&wake, &signal_number);
    }
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    long (*work)(long) = (long (*)(long))dlsym(library, "plug_work");
    void (*show)(void) = (void (*)(void))dlsym(library, "plug_show");
    if (!late) {
        printf("ready\n");
        fflush(stdout);
    }
    if (argc > 3)
        sigwait(&wake, &signal_number);
    long sum = 0;
    for (long i = 0; i < number(argc, argv, 2, 1000); i++)
        sum += work(host_work(i));
    printf("sum %ld\n", sum);
    SHOW(host_work);
    fflush(stdout);
    show();
    return 0;
}
