/* Functions around scopes around functions. Usage: marks_tree [CALLS=5000] */
#include "marks.h"

COUNTER(outermost);
COUNTER(between);
COUNTER(inside);
COUNTER(innermost);

static volatile long sink;

FN long inside(long x) {
    COUNT(inside);
    CTRACE_SCOPE("innermost");
    COUNT(innermost);
    sink = sink + 1;
    return x + 1;
}

FN long outermost(long x) {
    COUNT(outermost);
    CTRACE_SCOPE("between");
    COUNT(between);
    long result = inside(x);
    KEEP(result);
    return result + 1;
}

int main(int argc, char **argv) {
    long calls = number(argc, argv, 1, 5000), x = 0;
    for (long i = 0; i < calls; i++)
        x = outermost(x);
    SHOW(outermost);
    SHOW(between);
    SHOW(inside);
    SHOW(innermost);
    return x == 2 * calls ? 0 : 1;
}
