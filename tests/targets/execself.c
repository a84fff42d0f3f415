/* exec under trace.
 * Usage: execself self TIMES   work 100 times, exec itself until TIMES is 0
 *        execself other PATH [ARG...]   work 100 times, then become PATH */
#include "count.h"
#include <string.h>
#include <unistd.h>

COUNTER(work);

FN unsigned long work(unsigned long x) {
    COUNT(work);
    return x * 3 + 1;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    unsigned long before = number(argc, argv, 3, 0);
    unsigned long sum = 0;
    for (int i = 0; i < 100; i++)
        sum = work(sum);
    if (strcmp(argv[1], "other") == 0) {
        SHOW(work);
        fflush(stdout);
        execv(argv[2], argv + 2);
        return 3;
    }
    long left = strtol(argv[2], NULL, 10);
    before += calls_work;
    if (left == 0) {
        printf("sum %lu\ncalls work %lu\n", sum, before);
        return 0;
    }
    char times[32], total[32];
    snprintf(times, sizeof times, "%ld", left - 1);
    snprintf(total, sizeof total, "%lu", before);
    execl("/proc/self/exe", argv[0], "self", times, total, (char *)NULL);
    return 3;
}
