// A function that catches what another one throws, and leaves by a jump to the C++ runtime. Another
// function begins at the same stack pointer after that.
#include "count.h"

COUNTER(parse);
COUNTER(request);
COUNTER(reply);

FN int parse(int number) {
    COUNT(parse);
    if (number % 2 == 0)
        throw number;
    return number;
}

FN void request(int number) {
    COUNT(request);
    try {
        int parsed = parse(number);
        KEEP(parsed);
    } catch (int) {
    }
}

FN int reply(int number) {
    COUNT(reply);
    KEEP(number);
    return number * 3;
}

int main() {
    long sum = 0;
    for (int i = 0; i < 300; i++) {
        request(i);
        sum += reply(i);
    }
    printf("sum %ld\n", sum);
    SHOW(parse);
    SHOW(request);
    SHOW(reply);
    return 0;
}
