// A function through which one thread throws, while calls of it are open in others.
// Usage: moved [THROWS=40]
#include "count.h"
#include <atomic>
#include <thread>
#include <unistd.h>
#include <vector>

COUNTER(through);

enum What { THROWS, WAITS, RETURNS };

static std::atomic<int> waiting;
static std::atomic<bool> released;

FN long through(What what, long x) {
    x = x * 3 + 1;
    KEEP(x);
    COUNT_SHARED(through);
    if (what == THROWS)
        throw x;
    if (what == WAITS) {
        waiting++;
        while (!released)
            usleep(1000);
    }
    return x;
}

int main(int argc, char **argv) {
    const int others = 4;
    long throws = number(argc, argv, 1, 40);
    std::atomic<long> sum{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < others; i++)
        threads.emplace_back([&sum, i] {
            long x = through(WAITS, i);
            for (int call = 0; call < 100; call++)
                x = through(RETURNS, x & 0xffff);
            sum += x;
        });
    while (waiting < others)
        usleep(1000);
    for (long i = 0; i < throws; i++) {
        try {
            sum += through(THROWS, i);
        } catch (long caught) {
            sum += caught;
        }
        usleep(25 * 1000);
    }
    released = true;
    for (auto &thread : threads)
        thread.join();
    printf("sum %ld\n", sum.load());
    SHOW(through);
    return 0;
}
