/* Busy, then calm. `often` is called often enough to be costly, and works long
 * enough that its rate can be measured. `tiny` does next to nothing. `round_` contains them all.
 * SIGUSR1 makes it calm at once. `cpu_us` is the CPU time of its busy part.
 * Usage: budget BUSY_SECONDS CALM_SECONDS [TINY_PER_OFTEN=0] */
#include "count.h"
#include <signal.h>
#include <time.h>

COUNTER(round_);
COUNTER(often);
COUNTER(tiny);

static volatile unsigned long sink;
static long tiny_per_often;
static volatile sig_atomic_t is_calm;

static void become_calm(int signal) {
    (void)signal;
    is_calm = 1;
}

FN void tiny(void) {
    COUNT(tiny);
    sink++;
}

FN void often(void) {
    COUNT(often);
    for (int i = 0; i < 200000; i++) sink += (unsigned long)i;
    for (long i = 0; i < tiny_per_often; i++) tiny();
}

FN void round_(int times) {
    COUNT(round_);
    for (int i = 0; i < times; i++) often();
}

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    double busy = (double)number(argc, argv, 1, 5), calm = (double)number(argc, argv, 2, 0);
    tiny_per_often = number(argc, argv, 3, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGUSR1, become_calm);
    puts("ready");
    double start = now(CLOCK_MONOTONIC);
    /* Asked seldom enough to be cheap even if a probe takes ten microseconds. */
    while (!is_calm && now(CLOCK_MONOTONIC) < start + busy) round_(100);
    double cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    start = now(CLOCK_MONOTONIC);
    while (now(CLOCK_MONOTONIC) < start + calm) {
        /* Works half of the time on a fast processor. The probes cost less than 0.1 % of that. */
        struct timespec nap = {0, 20 * 1000 * 1000};
        for (int i = 0; i < 80000000; i++) sink += (unsigned long)i;
        round_(1);
        nanosleep(&nap, NULL);
    }
    SHOW(round_);
    SHOW(often);
    SHOW(tiny);
    printf("cpu_us %.0f\n", cpu * 1e6);
    return 0;
}
