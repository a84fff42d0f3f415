/* Waits for SIGUSR1, then calls `work` a hundred times. Counts the calls whose return address leads
 * out of this program's code, as that of a return probe does. */
#include "count.h"
#include "ready.h"
#include <unistd.h>

COUNTER(work);
COUNTER(foreign);

extern char __executable_start, etext;

FN void look(void) {
    void **frame_of_work = *(void ***)__builtin_frame_address(0);
    char *address = frame_of_work[1];
    if (address < &__executable_start || address >= &etext)
        COUNT(foreign);
}

FN unsigned long work(unsigned long x) {
    COUNT(work);
    look();
    return x * 3 + 1;
}

int main(void) {
    be_ready();
    unsigned long sum = 1;
    for (int i = 0; i < 100; i++)
        sum = work(sum);
    printf("sum %lu\n", sum);
    SHOW(work);
    SHOW(foreign);
    return 0;
}
