/* More than one stack per thread: a signal handler on its own stack, and fibers. */
#include "count.h"
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

COUNTER(interrupted);
COUNTER(on_alternate);
COUNTER(fiber_step);
COUNTER(fiber_main);
COUNTER(schedule);

FN long on_alternate(long x) {
    COUNT(on_alternate);
    return x + 1;
}

static volatile long handled;

static void handler(int number) { handled = on_alternate(handled) + (number == 0); }

FN long interrupted(long x) {
    COUNT(interrupted);
    raise(SIGUSR1); /* the handler runs before raise returns */
    return x + handled;
}

static ucontext_t main_context, fibers[3];
static long state[3];
static char stacks[3][65536];

FN long fiber_step(long x) {
    COUNT(fiber_step);
    return x * 3 + 1;
}

FN void fiber_main(int index) {
    COUNT(fiber_main);
    for (int i = 0; i < 100; i++) {
        state[index] = fiber_step(state[index] & 0xffff);
        swapcontext(&fibers[index], &main_context);
    }
}

FN void schedule(void) {
    COUNT(schedule);
    for (int i = 0; i < 3; i++)
        swapcontext(&main_context, &fibers[i]);
}

int main(void) {
    stack_t alternate;
    memset(&alternate, 0, sizeof alternate);
    alternate.ss_sp = malloc(65536);
    alternate.ss_size = 65536;
    sigaltstack(&alternate, NULL);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    volatile long sum = 0;
    for (int i = 0; i < 200; i++)
        sum += interrupted(i);
    for (int i = 0; i < 3; i++) {
        state[i] = i;
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks[i];
        fibers[i].uc_stack.ss_size = sizeof stacks[i];
        fibers[i].uc_link = &main_context;
        makecontext(&fibers[i], (void (*)(void))fiber_main, 1, i);
    }
    for (int i = 0; i < 101; i++) /* the last one lets each fiber return */
        schedule();
    printf("sum %ld\nstates %ld %ld %ld\n", sum, state[0], state[1], state[2]);
    SHOW(interrupted);
    SHOW(on_alternate);
    SHOW(fiber_step);
    SHOW(fiber_main);
    SHOW(schedule);
    return 0;
}
