/* Opens plugins that have an unwinder of their own, one after the other, and has each unwind calls
 * that began before, some times, with pauses.
 * Usage: opened_unwinder LIBRARY... */
#include "count.h"
#include <dlfcn.h>
#include <unistd.h>

COUNTER(begin);
COUNTER(dive);
COUNTER(plain);

static void (*throw_)(long);
static long (*catch_)(long (*)(long), long);

FN long plain(long value) {
    COUNT(plain);
    return value * 7;
}

FN long dive(long depth) {
    COUNT(dive);
    if (depth == 0)
        throw_(plain(3));
    long below = dive(depth - 1);
    KEEP(below);
    return below + 1;
}

FN long begin(const char *library) {
    COUNT(begin);
    void *handle = dlopen(library, RTLD_NOW);
    if (!handle)
        return -1;
    throw_ = (void (*)(long))dlsym(handle, "plug_throw");
    catch_ = (long (*)(long (*)(long), long))dlsym(handle, "plug_catch");
    long sum = 0;
    for (int i = 0; i < 10; i++)
        sum += catch_(dive, i % 5);
    return sum;
}

int main(int argc, char **argv) {
    long sum = 0;
    for (int i = 1; i < argc; i++)
        for (int turn = 0; turn < 4; turn++) {
            sum += begin(argv[i]);
            usleep(15000);
        }
    printf("sum %ld\n", sum);
    SHOW(begin);
    SHOW(dive);
    SHOW(plain);
    return 0;
}
