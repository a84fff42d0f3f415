/* Calls three deep, for benchmarks of tracers that use instrumentation by the compiler (-pg).
 * Usage: calls CALLS */
#include "count.h"

FN static unsigned long leaf(unsigned long x) {
    KEEP(x);
    return x + 1;
}

FN static unsigned long middle(unsigned long x) {
    for (int i = 0; i < 3; i++)
        x = leaf(x);
    return x;
}

FN static unsigned long outer(unsigned long x) { return middle(middle(x)) + 1; }

int main(int argc, char **argv) {
    unsigned long x = 0;
    /* Nine calls a turn. */
    for (long turns = number(argc, argv, 1, 0) / 9; turns > 0; turns--)
        x = outer(x);
    printf("x %lu\n", x);
    return 0;
}
