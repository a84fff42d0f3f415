// Functions with unlikely halves, which the compiler moves into `.cold` parts. Some of them run.
#include "count.h"
#include <stdexcept>
#include <vector>

COUNTER(h_parse);
COUNTER(h_table);
COUNTER(h_check);

static __attribute__((noinline, cold)) void complain(long x) {
    if (x == -12345)
        printf("never\n");
}

FN long h_parse(long x, std::vector<long> &out) {
    COUNT(h_parse);
    if (__builtin_expect(x % 50 == 0, 0)) {
        complain(x);
        out.push_back(-x);
        if (x % 100 == 0)
            throw std::out_of_range("hundred");
        return -1;
    }
    out.push_back(x);
    return x;
}

FN long h_table(const std::vector<long> &values, unsigned long index) {
    COUNT(h_table);
    return values.at(index) * 3; // at() throws from a cold part
}

FN long h_check(long x) {
    COUNT(h_check);
    long value = x;
    if (__builtin_expect(x > 390, 0)) {
        complain(x);
        value = x * x;
        for (int i = 0; i < 10; i++)
            value ^= value << 3;
    }
    return value;
}

int main() {
    std::vector<long> values;
    long sum = 0;
    int caught = 0;
    for (long i = 1; i <= 400; i++) {
        try {
            sum += h_parse(i, values);
            sum += h_table(values, (unsigned long)i * 7 % 500);
        } catch (const std::out_of_range &) {
            caught++;
        }
        sum += h_check(i);
    }
    printf("sum %ld\ncaught %d\nvalues %zu\n", sum, caught, values.size());
    SHOW(h_parse);
    SHOW(h_table);
    SHOW(h_check);
    return 0;
}
