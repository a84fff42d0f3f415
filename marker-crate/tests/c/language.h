#include "ctrace.h"
#include <string>

inline int twice(int x) {
    CTRACE_FUNCTION;
    return x * 2;
}
template <class T> T generic(T x) {
    CTRACE_FUNCTION;
    auto add = [&](T y) {
        CTRACE_SCOPE("lambda");
        return x + y;
    };
    return add(x + 1);
}
int twice_elsewhere(int x);
