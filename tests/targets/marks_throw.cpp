// Scopes left by exceptions, and by the end of their thread, which also unwinds them.
#include "marks.h"
#include <stdexcept>
#include <unistd.h>

COUNTER(thrower);
COUNTER(passer);
COUNTER(catcher);
COUNTER(ended);
COUNTER(cancelled);
COUNTER(leaving);

static volatile long sink;

FN int thrower(int x) {
    CTRACE_FUNCTION;
    COUNT(thrower);
    if (x % 3 == 0)
        throw std::runtime_error("three");
    if (x % 3 == 1)
        throw x;
    return x;
}

FN int passer(int depth, int x) {
    CTRACE_FUNCTION;
    COUNT(passer);
    if (depth == 0)
        return thrower(x);
    try {
        int below = passer(depth - 1, x);
        KEEP(below);
        return below + 1;
    } catch (int value) {
        if (depth == 3)
            throw value + 1000;
        throw;
    }
}

FN long catcher(int x) {
    CTRACE_FUNCTION;
    COUNT(catcher);
    CTRACE_BEGIN(early, "ended");
    COUNT(ended);
    sink = sink + 1;
    CTRACE_END(early);
    try {
        return passer(5, x);
    } catch (const std::exception &) {
        return 1;
    } catch (int value) {
        return value;
    }
}

static pthread_barrier_t barrier;

static void *wait_for_cancel(void *unused) {
    CTRACE_SCOPE("cancelled");
    COUNT(cancelled);
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
    return unused;
}

static void *leave(void *) {
    CTRACE_SCOPE("leaving");
    COUNT(leaving);
    pthread_exit(NULL);
}

int main() {
    for (int i = 0; i < 300; i++)
        catcher(i);
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 20; i++) {
        pthread_t id;
        pthread_create(&id, NULL, wait_for_cancel, NULL);
        pthread_barrier_wait(&barrier);
        pthread_cancel(id);
        pthread_join(id, NULL);
        pthread_create(&id, NULL, leave, NULL);
        pthread_join(id, NULL);
    }
    SHOW(thrower);
    SHOW(passer);
    SHOW(catcher);
    SHOW(ended);
    SHOW(cancelled);
    SHOW(leaving);
    return 0;
}
