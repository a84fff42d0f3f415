/* All macros where they compile to nothing. C11 and C++17. */
#include "ctrace.h"
#if CTRACE_ENABLED
#error "not disabled"
#endif
int f(int x);
int f(int x) {
    CTRACE_FUNCTION;
    CTRACE_FUNCTION();
    CTRACE_SCOPE("a");
    CTRACE_SCOPE_IN(dev, "b");
    CTRACE_FUNCTION_IN(dev);
    CTRACE_BEGIN(part, "c");
    CTRACE_BEGIN_IN(dev, other, "d");
    CTRACE_END(part);
    CTRACE_END(other);
    return x;
}
int main(void) { return f(0); }
