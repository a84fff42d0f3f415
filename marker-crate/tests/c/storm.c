/* Scopes in a signal handler that interrupts scopes, eventually at every instruction. No event is lost
 * or delivered twice. */
#include "support.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>

static volatile long in_handler; /* scopes entered there */

/* The depth limit of handlers in handlers. If a handler takes longer than the time between two signals,
 * handlers would nest until the stack overflows. */
enum { DEEPEST = 6 };
static int depth;          /* of handlers within handlers */
static long calls, turns;  /* of work, and around it */
static int by_timer;       /* who signals: a timer, or another thread */
static void next_alarm(void) {
    struct itimerval once = {{0, 0}, {0, 40}};
    if (by_timer) setitimer(ITIMER_REAL, &once, NULL);
}

static __attribute__((noinline)) void handler_work(int n) {
    CTRACE_SCOPE("handler");
    if (n) handler_work(n - 1);
}

static void handler(int number) {
    static unsigned turn;
    (void)number;
    /* Now a few, now more than a buffer holds. */
    int n = (++turn & 15) == 0 ? 150 : (int)(turn & 7);
    int saved = errno;
    if (__atomic_add_fetch(&depth, 1, __ATOMIC_RELAXED) < DEEPEST) next_alarm();
    handler_work(n);
    CHECK(errno == saved);
    __atomic_fetch_add(&in_handler, n + 1, __ATOMIC_RELAXED);
    if (__atomic_sub_fetch(&depth, 1, __ATOMIC_RELAXED) == 0) next_alarm();
}

static __attribute__((noinline)) void work(void) { CTRACE_SCOPE("work"); }

static void storm(void (*how)(int)) {
    struct itimerval off = {{0, 0}, {0, 0}};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_NODEFER; /* it interrupts itself as well */
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    by_timer = !how;
    if (how) how(1);
    next_alarm();
    for (; calls < 600000; __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED))
        if (calls < 40 * in_handler + 4000) work(), calls++;
        else sched_yield();
    if (how) how(0);
    by_timer = 0;
    setitimer(ITIMER_REAL, &off, NULL);
    usleep(1000);

    ctrace_c1_empty(ctrace_c1_mine, 0);
    long entries = 0, exits = 0, handlers = 0;
    for (int i = 0; i < event_count; i++) {
        if (events[i].exit) exits++;
        else entries++;
        if (!events[i].exit && strcmp(site_name(events[i].site), "handler") == 0) handlers++;
    }
    fprintf(stderr, "%ld scopes, %ld in handlers, found %ld, %ld, %ld; %d buffers, %d batches\n", calls + in_handler, in_handler,
           entries, exits, handlers, buffers(), batch_count);
    CHECK(entries == calls + in_handler && exits == entries && handlers == in_handler);
    long taken = 0;
    for (struct ctrace_c1_buffer *b = ctrace_c1_list; b; b = b->next) taken += (long)b->events;
    CHECK(taken == event_count);
}

static pthread_t target;
static int stop;
static void *sender(void *unused) {
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        long before = __atomic_load_n(&turns, __ATOMIC_RELAXED);
        for (int burst = 0; burst < DEEPEST; burst++) {
            pthread_kill(target, SIGUSR1);
            for (int i = 0; i < 300; i++) __asm__ volatile("pause");
        }
        while (__atomic_load_n(&turns, __ATOMIC_RELAXED) - before < 64 && !__atomic_load_n(&stop, __ATOMIC_RELAXED))
            sched_yield();
    }
    return NULL;
}
static void by_thread(int start) {
    static pthread_t id;
    if (start) {
        target = pthread_self();
        CHECK(pthread_create(&id, NULL, sender, NULL) == 0);
    } else {
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        CHECK(pthread_join(id, NULL) == 0);
    }
}

int main(int count, char **arguments) {
    (void)arguments;
    capture();
    switch_to(NULL, 1);
    storm(count > 1 ? by_thread : NULL);
    return 0;
}
