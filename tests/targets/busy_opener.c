/* Calls `work` in a thread all the time, and opens a library meanwhile.
 * Usage: busy_opener LIBRARY */
#include "count.h"
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

COUNTER(work);

static volatile int is_over;

FN long work(long value) {
    COUNT(work);
    return value * 3 + 1;
}

static void *works(void *unused) {
    long value = 1;
    while (!is_over) {
        value = work(value);
        KEEP(value);
        usleep(50);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 2 || pthread_create(&thread, NULL, works, NULL) != 0)
        return 1;
    usleep(200000);
    if (!dlopen(argv[1], RTLD_NOW))
        return 2;
    usleep(2400000);
    is_over = 1;
    pthread_join(thread, NULL);
    SHOW(work);
    return 0;
}
