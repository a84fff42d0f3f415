/* longjmp over frames, repeatedly: the frames are left without a return.
 * Usage: longjmp [ROUNDS=500] */
#include "count.h"
#include <setjmp.h>

COUNTER(catcher);
COUNTER(dive);
COUNTER(leap);
COUNTER(after);

static jmp_buf landing;

FN void leap(int value) {
    COUNT(leap);
    longjmp(landing, value);
}

FN int dive(int depth) {
    COUNT(dive);
    if (depth == 0)
        leap(42);
    int below = dive(depth - 1);
    KEEP(below);
    return below + 1;
}

FN int after(int x) {
    COUNT(after);
    return x + 1;
}

FN int catcher(int depth) {
    COUNT(catcher);
    int value = setjmp(landing);
    if (value == 0)
        return dive(depth);
    return after(value);
}

int main(int argc, char **argv) {
    long rounds = number(argc, argv, 1, 500);
    long sum = 0;
    for (long i = 0; i < rounds; i++)
        sum += catcher(9);
    printf("sum %ld\n", sum);
    SHOW(catcher);
    SHOW(dive);
    SHOW(leap);
    SHOW(after);
    return 0;
}
