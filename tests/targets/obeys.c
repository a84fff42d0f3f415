/* Calls `work` as often as a line of its standard input says, and `part` twice in each call. It
 * answers each line by what it counted so far: `calls work N part N`. Ends with its input. */
#include "count.h"

COUNTER(work);
COUNTER(part);

FN unsigned long part(unsigned long x) {
    COUNT(part);
    return x * 3 + 1;
}

FN unsigned long work(unsigned long x) {
    COUNT(work);
    x = part(x);
    KEEP(x);
    x = part(x);
    KEEP(x);
    return x ^ 5;
}

int main(void) {
    char line[64];
    unsigned long x = 1;
    while (fgets(line, sizeof line, stdin)) {
        for (unsigned long left = strtoul(line, NULL, 10); left > 0; left--)
            x = work(x);
        KEEP(x);
        printf("calls work %lu part %lu\n", calls_work, calls_part);
        fflush(stdout);
    }
    return 0;
}
