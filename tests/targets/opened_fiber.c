/* Opens a library and switches stacks by it at once, within calls that began before. Of several
 * libraries it opens one after the other, and switches by each some times, with pauses.
 * Usage: opened_fiber LIBRARY... */
#include "count.h"
#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>

COUNTER(begin);
COUNTER(dive);
COUNTER(resume);

enum { STACK = 65536 };
static void (*switch_stack)(void **, void *);
static void *scheduler, *coroutine;
static volatile long sum;

/* Its calls begin in one turn of the coroutine and end in another. */
FN long dive(long depth) {
    COUNT(dive);
    if (depth % 3 == 0)
        switch_stack(&coroutine, scheduler);
    long below = depth == 0 ? 0 : dive(depth - 1);
    KEEP(below);
    return below + 1;
}

static void body(void) {
    for (int i = 0;; i++)
        sum += dive(i % 5);
}

FN void resume(void) {
    COUNT(resume);
    switch_stack(&scheduler, coroutine);
    __asm__ volatile("");
}

FN long begin(const char *library) {
    COUNT(begin);
    void *handle = dlopen(library, RTLD_NOW);
    switch_stack = handle ? (void (*)(void **, void *))dlsym(handle, "switch_stack") : 0;
    if (!switch_stack)
        return -1;
    for (int i = 0; i < 40; i++)
        resume();
    return sum;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    uint64_t *top = (uint64_t *)((char *)aligned_alloc(64, STACK) + STACK - 64);
    *--top = 0; /* where body would return to */
    *--top = (uint64_t)body;
    for (int saved = 0; saved < 6; saved++)
        *--top = 0;
    coroutine = top;
    for (int i = 1; i < argc; i++)
        for (int turn = 0; turn < (argc > 2 ? 4 : 1); turn++) {
            begin(argv[i]);
            if (argc > 2)
                usleep(4000);
        }
    printf("sum %ld\n", sum);
    SHOW(begin);
    SHOW(dive);
    SHOW(resume);
    return 0;
}
