/* Plain calls, mutual recursion, recursion to depth 200 and tail calls.
 * Usage: counts [CALLS=1000000] */
#include "count.h"

COUNTER(leaf);
COUNTER(ping);
COUNTER(pong);
COUNTER(descend);
COUNTER(tail_first);
COUNTER(tail_second);
COUNTER(tail_third);

static volatile unsigned long sink;

FN unsigned long leaf(unsigned long x) {
    COUNT(leaf);
    return x * 2654435761u + 1;
}

FN unsigned long pong(unsigned depth);

FN unsigned long ping(unsigned depth) {
    COUNT(ping);
    return depth == 0 ? 1 : pong(depth - 1) + 1;
}

FN unsigned long pong(unsigned depth) {
    COUNT(pong);
    return depth == 0 ? 2 : ping(depth - 1) + 2;
}

FN unsigned long descend(unsigned depth) {
    COUNT(descend);
    if (depth == 0)
        return 0;
    unsigned long below = descend(depth - 1);
    KEEP(below);
    return below + depth;
}

/* At -O2 these end in jumps. */
FN unsigned long tail_third(unsigned long x) {
    COUNT(tail_third);
    return x ^ 0x5a5a;
}

FN unsigned long tail_second(unsigned long x) {
    COUNT(tail_second);
    return tail_third(x + 3);
}

FN unsigned long tail_first(unsigned long x) {
    COUNT(tail_first);
    return tail_second(x * 3);
}

int main(int argc, char **argv) {
    long calls = number(argc, argv, 1, 1000000);
    unsigned long sum = 0;
    for (long i = 0; i < calls; i++)
        sum = leaf(sum);
    for (int i = 0; i < 10; i++)
        sum += ping(20);
    sum += descend(200);
    for (int i = 0; i < 1000; i++)
        sum += tail_first(i);
    sink = sum;
    printf("sum %lu\n", sum);
    SHOW(leaf);
    SHOW(ping);
    SHOW(pong);
    SHOW(descend);
    SHOW(tail_first);
    SHOW(tail_second);
    SHOW(tail_third);
    return 0;
}
