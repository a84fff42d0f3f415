/* Coroutines that switch stacks by themselves: a few instructions, no library. */
#include "count.h"
#include "switch_stack.h"
#include <stdint.h>

COUNTER(dive);
COUNTER(yield_);
COUNTER(resume);

enum { COROUTINES = 4, STACK = 65536 };
static void *scheduler, *coroutines[COROUTINES];
static int current, done[COROUTINES];
static volatile long sum;

FN void yield_(void) {
    COUNT(yield_);
    switch_stack(&coroutines[current], scheduler);
    __asm__ volatile("");
}

/* Calls that begin before a switch end after it, during another coroutine's turn. */
FN long dive(long depth) {
    COUNT(dive);
    if (depth % 3 == 0)
        yield_();
    long below = depth == 0 ? 0 : dive(depth - 1);
    KEEP(below);
    return below + 1;
}

static void body(void) {
    for (int i = 0; i < 100; i++)
        sum += dive(i % 5);
    done[current] = 1;
    for (;;)
        switch_stack(&coroutines[current], scheduler);
}

FN void resume(int index) {
    COUNT(resume);
    current = index;
    switch_stack(&scheduler, coroutines[index]);
    __asm__ volatile("");
}

int main(void) {
    for (int i = 0; i < COROUTINES; i++) {
        uint64_t *top = (uint64_t *)((char *)aligned_alloc(64, STACK) + STACK - 64);
        *--top = 0; /* where body would return to */
        *--top = (uint64_t)body;
        for (int saved = 0; saved < 6; saved++)
            *--top = 0;
        coroutines[i] = top;
    }
    for (int left = 1; left;) {
        left = 0;
        for (int i = 0; i < COROUTINES; i++)
            if (!done[i]) {
                left = 1;
                resume(i);
            }
    }
    printf("sum %ld\n", sum);
    SHOW(dive);
    SHOW(yield_);
    SHOW(resume);
    return 0;
}
