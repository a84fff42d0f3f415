/* Two coroutines whose stacks are mappings beside each other. The one on the higher stack makes calls inside each other while
 * the one on the lower stack is inside a call, and stays there while that one makes another. It prints `ready` when the stacks
 * are there, and waits for SIGUSR1.
 * Usage: beside [ROUNDS=50] */
#include "count.h"
#include "ready.h"
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

COUNTER(low);
COUNTER(leaf);
COUNTER(high);

enum { STACK = 65536, GUARD = 4096 };
static ucontext_t scheduler, on_low, on_high;
static volatile long sum;

FN void leaf(void) {
    COUNT(leaf);
    sum++;
}

FN void low(void) {
    COUNT(low);
    swapcontext(&on_low, &scheduler);
    leaf();
    __asm__ volatile("");
}

FN void high(int depth) {
    COUNT(high);
    if (depth == 0) swapcontext(&on_high, &scheduler);
    else high(depth - 1);
    __asm__ volatile("");
}

static void low_main(void) {
    for (;;) {
        low();
        swapcontext(&on_low, &scheduler);
    }
}

static void high_main(void) {
    for (;;) {
        high(3);
        swapcontext(&on_high, &scheduler);
    }
}

static void prepare(ucontext_t *context, char *stack, void (*function)(void)) {
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = STACK;
    makecontext(context, function, 0);
}

int main(int argc, char **argv) {
    long rounds = number(argc, argv, 1, 50);
    char *room = mmap(NULL, 2 * (STACK + GUARD), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return 1;
    char *lower = room + GUARD, *higher = lower + STACK + GUARD;
    if (mprotect(lower, STACK, PROT_READ | PROT_WRITE) != 0) return 1;
    if (mprotect(higher, STACK, PROT_READ | PROT_WRITE) != 0) return 1;
    prepare(&on_low, lower, low_main);
    prepare(&on_high, higher, high_main);
    be_ready();
    for (long i = 0; i < rounds; i++) {
        swapcontext(&scheduler, &on_low);  /* inside `low` */
        swapcontext(&scheduler, &on_high); /* inside four of `high` */
        swapcontext(&scheduler, &on_low);  /* `leaf` in `low`, which ends */
        swapcontext(&scheduler, &on_high); /* they end */
    }
    SHOW(low);
    SHOW(leaf);
    SHOW(high);
    return 0;
}
