/* Calls a function with one scope in it. A probe on the function and the marker measure the same
 * time with two clocks. */
#include "count.h"
#include "../../marker-crate/include/ctrace.h"

COUNTER(outside);

FN long outside(long x) {
    COUNT(outside);
    CTRACE_SCOPE("inside");
    KEEP(x);
    return x + 1;
}

int main(int argc, char **argv) {
    long x = 0, calls = number(argc, argv, 1, 1);
    while (x < calls)
        x = outside(x);
    SHOW(outside);
    return 0;
}
