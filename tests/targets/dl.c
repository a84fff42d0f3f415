/* Calls into a library opened at run time.
 * Usage: dl LIBRARY [CALLS=1000] [DELAY_MS=0 before it is opened] */
#include "count.h"
#include <dlfcn.h>
#include <unistd.h>

COUNTER(host_work);

FN long host_work(long x) {
    COUNT(host_work);
    return x + 1;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    usleep((useconds_t)(number(argc, argv, 3, 0) * 1000));
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    long (*work)(long) = (long (*)(long))dlsym(library, "plug_work");
    void (*show)(void) = (void (*)(void))dlsym(library, "plug_show");
    long sum = 0;
    for (long i = 0; i < number(argc, argv, 2, 1000); i++)
        sum += work(host_work(i));
    printf("sum %ld\n", sum);
    SHOW(host_work);
    fflush(stdout);
    show();
    return 0;
}
