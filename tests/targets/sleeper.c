/* Is in `main` and `wait_for_ever` all the time, and calls `tick` a hundred times a second. `never` is
 * not called, and `returned` was called before. Its return addresses are still on the stack. */
#include "count.h"
#include <time.h>

FN unsigned long tick(unsigned long x) { return x * 3 + 1; }

FN unsigned long never(unsigned long x) { return x * 5 + 1; }

FN unsigned long returned(unsigned long depth) {
    unsigned long below = depth ? returned(depth - 1) : 0;
    KEEP(below);
    return below + depth;
}

FN unsigned long wait_for_ever(unsigned long x) {
    char untouched[8192];
    __asm__ volatile("" : : "r"(untouched) : "memory");
    for (;;) {
        struct timespec nap = {0, 10 * 1000 * 1000};
        nanosleep(&nap, NULL);
        x = tick(x);
        KEEP(x);
    }
    return x;
}

int main(int argc, char **argv) {
    puts("ready");
    fflush(stdout);
    if (argc > 1)
        return (int)never((unsigned long)argc);
    (void)argv;
    unsigned long sum = returned(64);
    KEEP(sum);
    unsigned long last = wait_for_ever((unsigned long)argc);
    KEEP(last);
    return 0;
}
