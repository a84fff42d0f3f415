// A server that refuses every other request by an exception, a thousand times a second, and answers them
// deeper in the stack.
// Usage: throws_often SECONDS. `us handle` is the time that passed in calls of that function.
#include "count.h"
#include <time.h>

COUNTER(parse);
COUNTER(handle);
COUNTER(reply);

static volatile unsigned long sink;

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

FN int parse(int request) {
    COUNT(parse);
    if (request % 2 == 0)
        throw request;
    return request;
}

FN int handle(int request) {
    COUNT(handle);
    try {
        int parsed = parse(request);
        KEEP(parsed);
        return parsed;
    } catch (int thrown) {
        return -thrown;
    }
}

FN int burn(int times) {
    for (int i = 0; i < times; i++)
        sink = sink + (unsigned long)i;
    return times;
}

FN int reply(int value) {
    COUNT(reply);
    int burnt = burn(1000000);
    KEEP(burnt);
    return burnt + value;
}

FN int answer(int value) {
    volatile int buffer[256];
    buffer[0] = value;
    return reply(buffer[0]) + buffer[0];
}

int main(int argc, char **argv) {
    double end = now() + (double)number(argc, argv, 1, 2) * 1e6, spent = 0;
    long sum = 0;
    for (int request = 0; now() < end; request++) {
        double begun = now();
        int handled = handle(request);
        spent += now() - begun;
        sum += answer(handled);
    }
    SHOW(parse);
    SHOW(handle);
    SHOW(reply);
    printf("us handle %.0f\nsum %ld\n", spent, sum);
    return 0;
}
