/* USDT probes of sys/sdt.h beside scopes. The program switches the scopes on itself, like a kernel,
 * and the header's own USDT probe sees the buffers. Usage: marks_sdt [CALLS=1000] */
#include "marks.h"
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

__extension__ unsigned short ctdemo_tick_semaphore __attribute__((unused, section(".probes")));

static unsigned long guarded;

FN void tick(long i) {
    CTRACE_SCOPE("tick");
    if (__builtin_expect(ctdemo_tick_semaphore, 0)) {
        guarded++;
        STAP_PROBE2(ctdemo, tick, i, "text");
    }
}

int main(int argc, char **argv) {
    long calls = number(argc, argv, 1, 1000);
    const struct marks_site *site;
    for (site = marks_first; site < marks_end; site++)
        *(volatile uint16_t *)((uintptr_t)&site->semaphore + site->semaphore) = 1;
    for (long i = 0; i < calls; i++)
        tick(i);
    printf("guarded %lu pid %d\n", guarded, getpid());
    return 0;
}
