/* Repeatedly opens, uses and closes a library with scopes, between its own scopes. Before the first
 * call it waits until the library's scopes are on.
 * Usage: marks_dl LIBRARY [TIMES=5] [CALLS=300] */
#include "marks.h"
#include <dlfcn.h>

COUNTER(host);
COUNTER(marked_work);
COUNTER(marked_inner);

FN void host(void (*work)(void)) {
    CTRACE_FUNCTION;
    COUNT(host);
    work();
    COUNT(marked_work);
    COUNT(marked_inner);
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    long times = number(argc, argv, 2, 5), calls = number(argc, argv, 3, 300);
    for (long time = 0; time < times; time++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        if (!((int (*)(void))dlsym(library, "marked_wait_until_on"))())
            return 3;
        void (*work)(void) = (void (*)(void))dlsym(library, "marked_work");
        for (long i = 0; i < calls; i++)
            host(work);
        dlclose(library);
        if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD)) {
            fprintf(stderr, "the library is still there\n");
            return 4;
        }
    }
    SHOW(host);
    SHOW(marked_work);
    SHOW(marked_inner);
    return 0;
}
