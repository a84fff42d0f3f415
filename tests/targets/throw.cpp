// Exceptions through frames, with destructors on the way, rethrown and caught.
#include "count.h"
#include <stdexcept>
#include <string>

COUNTER(thrower);
COUNTER(passer);
COUNTER(catcher);
COUNTER(plain);

static long destroyed;

struct Guard {
    ~Guard() { destroyed++; }
};

FN int thrower(int x) {
    COUNT(thrower);
    if (x % 3 == 0)
        throw std::runtime_error("three " + std::to_string(x));
    if (x % 3 == 1)
        throw x;
    return x;
}

FN int passer(int depth, int x) {
    COUNT(passer);
    Guard guard;
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
    COUNT(catcher);
    try {
        return passer(5, x);
    } catch (const std::exception &e) {
        return (long)std::string(e.what()).size();
    } catch (int value) {
        return value;
    }
}

FN long plain(long x) {
    COUNT(plain);
    return x * 7;
}

int main() {
    long sum = 0;
    for (int i = 0; i < 300; i++)
        sum += plain(catcher(i));
    printf("sum %ld\ndestroyed %ld\n", sum, destroyed);
    SHOW(thrower);
    SHOW(passer);
    SHOW(catcher);
    SHOW(plain);
    return 0;
}
