/* All macros where they compile to nothing. C11 and C++17. */
#include "ctrace.h"
#if CTRACE_ENABLED
#error "not disabled"
#endif
int never(int x); /* is nowhere */
const char *never_named(int x);
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
    int used = x, by_message = x;
    double also_used = x;
    CTRACE_SCOPE_VALUE("e", "x", used);
    CTRACE_SCOPE_VALUE_IN(dev, "f", "x", also_used);
    CTRACE_MESSAGE("g");
    CTRACE_MESSAGE("h %d", by_message);
    CTRACE_MESSAGE_LEVEL(CTRACE_WARN, "i %d", never(x));
    CTRACE_MESSAGE_IN(dev, 0, "j");
    CTRACE_PLOT("k", never(x));
    CTRACE_PLOT_UNIT("l", "ms", x);
    CTRACE_PLOT_IN(dev, "m", x);
    CTRACE_FRAME("n");
    CTRACE_FRAME_IN(dev, "o");
    CTRACE_SCOPE_COLOUR("p", 0x33aaff);
    CTRACE_SCOPE_COLOR_IN(dev, "q", 1);
    CTRACE_FUNCTION_COLOUR(2);
    CTRACE_FUNCTION_COLOUR_IN(dev, 3);
    CTRACE_BEGIN_COLOUR(red, "r", 0xff0000);
    CTRACE_BEGIN_COLOUR_IN(dev, green, "s", 0x00ff00);
    CTRACE_END(red);
    CTRACE_END(green);
    CTRACE_FRAME_SCOPE("t");
    CTRACE_FRAME_SCOPE_IN(dev, "u");
    CTRACE_FRAME_BEGIN(step, "v");
    CTRACE_FRAME_BEGIN_IN(dev, other_step, "w");
    CTRACE_END(step);
    CTRACE_END(other_step);
    CTRACE_SCOPE_VALUE_COLOUR("x", "x", used, 4);
    CTRACE_SCOPE_VALUE_COLOR_IN(dev, "y", "x", never(x), 5);
    CTRACE_MESSAGE_COLOUR(0, 6, "z %d", never(x));
    CTRACE_MESSAGE_COLOUR_IN(dev, CTRACE_INFO, 7, "a");
    CTRACE_PLOT_COLOUR("b", never(x), 8);
    CTRACE_PLOT_UNIT_COLOUR("c", "ms", x, 9);
    CTRACE_PLOT_COLOUR_IN(dev, "d", x, 10);
    CTRACE_FRAME_COLOUR("e", 11);
    CTRACE_FRAME_COLOUR_IN(dev, "f", 12);
    CTRACE_THREAD_NAME("never");
    CTRACE_THREAD_NAME(never_named(x));
    return x;
}
int main(void) { return f(0); }
