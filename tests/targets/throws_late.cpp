// A function that sleeps 2 ms and then throws, every other time, below one that catches.
#include "count.h"
#include <time.h>

COUNTER(works);
COUNTER(catches);

FN int works(int x) {
    COUNT(works);
    timespec pause = {0, 2000000};
    nanosleep(&pause, nullptr);
    if (x % 2 == 0)
        throw x;
    return x;
}

FN int catches(int x) {
    COUNT(catches);
    try {
        return works(x);
    } catch (int thrown) {
        return -thrown;
    }
}

int main() {
    int sum = 0;
    for (int i = 0; i < 60; i++)
        sum += catches(i);
    SHOW(works);
    SHOW(catches);
    printf("%d\n", sum);
    return 0;
}
