// Takes locks a known number of times. One is held until the other thread sleeps in its wait, and then
// for a while.
#include "ctrace.h"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

enum { ROUNDS = 5, ALONE = 300, READS = 12 };

static ctrace::lockable<std::mutex> held("pool \x1b[2J");
static ctrace::lockable<std::mutex> alone_lock("alone");
static ctrace::lockable<std::shared_mutex> table("table");
static ctrace::lockable<std::mutex> unnamed_lock;
static std::atomic<int> waiter_tid, round_of, released;

// Waits until a thread sleeps in a futex.
static void until_it_sleeps(int tid) {
    char path[64], text[8] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    for (;;) {
        FILE *file = fopen(path, "r");
        bool sleeps = file && fgets(text, sizeof text, file) && atoi(text) == SYS_futex;
        if (file) fclose(file);
        if (sleeps) return;
        usleep(1000);
    }
}

__attribute__((noinline)) static void hold(int round) {
    CTRACE_SCOPE("holds it");
    std::lock_guard<decltype(held)> guard(held);
    round_of = round;
    until_it_sleeps(waiter_tid);
    usleep(20000);
}

__attribute__((noinline)) static void wait(int round) {
    CTRACE_SCOPE("waits for it");
    while (round_of < round) usleep(1000);
    if (held.try_lock()) abort();
    { std::lock_guard<decltype(held)> guard(held); }
    released = round;
}

static void alone() {
    for (int i = 0; i < ALONE; i++) std::lock_guard<decltype(alone_lock)> guard(alone_lock);
}

// Holds that end in another order, and after the scope in which they began.
__attribute__((noinline)) static void overlap() {
    auto *one = new ctrace::lockable<std::mutex>("heap");
    ctrace::lockable<std::mutex> two("stack");
    {
        CTRACE_SCOPE("outer");
        {
            CTRACE_SCOPE("inner");
            one->lock();
            two.lock();
        }
        one->unlock();
    }
    two.unlock();
    delete one;
}

int main() {
    std::thread waiter([] {
        waiter_tid = (int)syscall(SYS_gettid);
        for (int round = 1; round <= ROUNDS; round++) wait(round);
        alone();
    });
    while (!waiter_tid) usleep(1000);
    for (int round = 1; round <= ROUNDS; round++) {
        hold(round);
        while (released < round) usleep(1000);
    }
    waiter.join();
    alone();
    for (int i = 0; i < READS; i++) {
        std::shared_lock<decltype(table)> one(table), two(table);
    }
    { std::lock_guard<decltype(table)> guard(table); }
    { std::lock_guard<decltype(unnamed_lock)> guard(unnamed_lock); }
    for (int i = 0; i < 7; i++) overlap();
    return 0;
}
