// A thread on every processor. In each round all of them throw at one moment, through functions that
// have not been left by an exception before, and leave no processor idle meanwhile.
#include "count.h"
#include <atomic>
#include <sched.h>
#include <thread>
#include <vector>

COUNTER(plain);

static const int ROUNDS = 30;
static unsigned long throws[ROUNDS];

static int threads;
static std::atomic<long> arrived;

// Returns when all threads have called it. Waits without giving the processor up.
static void meet() {
    long mine = ++arrived;
    long last = (mine + threads - 1) / threads * threads;
    while (arrived.load() < last) {
    }
}

template <int ROUND> FN void thrower(int thread) {
    __atomic_fetch_add(&throws[ROUND], 1, __ATOMIC_RELAXED);
    meet();
    throw thread * 100 + ROUND;
}

template <int ROUND> FN int passer(int thread) {
    thrower<ROUND>(thread);
    return 0;
}

FN long plain(long value) {
    COUNT_SHARED(plain);
    return value * 7;
}

template <int ROUND> static long rounds(int thread) {
    long sum = 0;
    try {
        sum += passer<ROUND>(thread);
    } catch (int value) {
        sum += plain(value);
    }
    if constexpr (ROUND > 0)
        sum += rounds<ROUND - 1>(thread);
    return sum;
}

int main() {
    cpu_set_t mine;
    sched_getaffinity(0, sizeof mine, &mine);
    threads = CPU_COUNT(&mine) > 1 ? CPU_COUNT(&mine) : 2;
    std::vector<long> sums(threads);
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++)
        all.emplace_back([i, &sums] { sums[i] = rounds<ROUNDS - 1>(i); });
    for (std::thread &one : all)
        one.join();
    for (int i = 0; i < threads; i++)
        printf("sum %ld\n", sums[i]);
    for (int i = 0; i < ROUNDS; i++)
        printf("calls thrower<%d> %lu\n", i, throws[i]);
    SHOW(plain);
    return 0;
}
