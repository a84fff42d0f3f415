// A function through which one thread throws, while calls of it are open in others. These end when
// the function's code has changed since the first throw, so that its new probes see them.
// Usage: moved [THROWS=40]
#include "count.h"
#include <atomic>
#include <cstring>
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

// The function's code, with the probes that it has now.
struct Code {
    unsigned char bytes[192];
    Code() { memcpy(bytes, reinterpret_cast<const void *>(&through), sizeof bytes); }
    bool operator==(const Code &other) const { return !memcmp(bytes, other.bytes, sizeof bytes); }
};

// Waits until the code is another than `before`, and has not changed for 0.3 s. Gives up after 20 s.
static void wait_for_other_code(const Code &before) {
    Code last;
    for (int round = 0, same = 0; round < 2000 && (last == before || same < 30); round++) {
        usleep(10 * 1000);
        Code now;
        same = now == last ? same + 1 : 0;
        last = now;
    }
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
    Code before;
    for (long i = 0; i < throws; i++) {
        try {
            sum += through(THROWS, i);
        } catch (long caught) {
            sum += caught;
        }
        usleep(1000);
    }
    wait_for_other_code(before);
    released = true;
    for (auto &thread : threads)
        thread.join();
    printf("sum %ld\n", sum.load());
    SHOW(through);
    return 0;
}
