/* Enters few scopes a second; `ended NS` (CLOCK_MONOTONIC) gives the end of each call.
 * Usage: marks_slow [CALLS=80] [MILLISECONDS=50 each] */
#include "marks.h"

COUNTER(slow);

static unsigned long ended[10000];

FN void slow(void) {
    CTRACE_FUNCTION;
    COUNT(slow);
}

int main(int argc, char **argv) {
    long calls = number(argc, argv, 1, 80), pause = number(argc, argv, 2, 50);
    if (calls > 10000)
        return 2;
    for (long i = 0; i < calls; i++) {
        struct timespec t;
        slow();
        clock_gettime(CLOCK_MONOTONIC, &t);
        ended[i] = t.tv_sec * 1000000000ul + t.tv_nsec;
        marks_doze(pause);
    }
    for (long i = 0; i < calls; i++)
        printf("ended %lu\n", ended[i]);
    SHOW(slow);
    return 0;
}
