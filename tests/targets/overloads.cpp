// Functions with the same short name: overloads, and exceptions through them.
#include "count.h"

namespace shop {

FN long format(int value) { return value + 1; }
FN long format(double value) { return value > 2 ? 7 : 9; }
FN long format(char const *value) { return *value; }

FN long load(int value) {
    if (value % 4 == 0)
        throw value;
    long formatted = format(value);
    KEEP(formatted);
    return formatted + 1;
}

template <class T> FN T twice(T value) { return value + value; }

} // namespace shop

FN long work(int value, char const *text) {
    try {
        return shop::load(value) + shop::twice(value) + shop::twice((long)value);
    } catch (int thrown) {
        return shop::format(thrown * 1.5) + shop::format(text);
    }
}

int main(int argc, char **argv) {
    long sum = 0;
    for (int i = 0; i < 400; i++)
        sum += work(i, argv[0]);
    printf("%ld\n", sum);
    return argc > 9;
}
