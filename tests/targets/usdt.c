/* USDT probes, one with a semaphore and one without. Counts are lines `usdt PROVIDER:NAME N`.
 * `guarded` counts the passes with the semaphore raised. Usage: usdt [ROUNDS=1000] */
#include "count.h"
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

__extension__ unsigned short ctdemo_tick_semaphore __attribute__((unused, section(".probes")));
__extension__ unsigned short ctdemo_done_semaphore __attribute__((unused, section(".probes")));

static unsigned long ticks, guarded, twice;

FN void tick(long i) {
    if (__builtin_expect(ctdemo_tick_semaphore, 0))
        guarded++;
    ticks++;
    STAP_PROBE2(ctdemo, tick, i, ticks);
}

/* Two sites of one name. */
FN void both(long i) {
    if (i % 2)
        STAP_PROBE1(ctdemo, done, i);
    else
        STAP_PROBE1(ctdemo, done, -i);
    twice++;
}

int main(int argc, char **argv) {
    long rounds = number(argc, argv, 1, 1000);
    for (long i = 0; i < rounds; i++) {
        tick(i);
        both(i);
    }
    printf("usdt ctdemo:tick %lu\nusdt ctdemo:done %lu\n", ticks, twice);
    printf("guarded %lu\n", guarded);
    return 0;
}
