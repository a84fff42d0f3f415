/* Points and scopes with values in two groups. C11 and C++17. */
#include "ctrace.h"

/* Groups that are macros, as `linux` is one, keep their names. */
#define prod 1
#define dev another group

int f(int x);
int f(int x) {
    int of_dev = x;
    CTRACE_SCOPE_VALUE_IN(prod, "scope in prod", "x", x);
    CTRACE_MESSAGE_IN(prod, CTRACE_INFO, "message in prod: %d", x);
    CTRACE_PLOT_IN(prod, "plot in prod", x);
    CTRACE_FRAME_IN(prod, "frame in prod");
    CTRACE_SCOPE_COLOUR_IN(prod, "colour in prod", 0x33aaff);
    CTRACE_SCOPE_VALUE_COLOUR_IN(prod, "value and colour in prod", "x", x, 0x33aaff);
    CTRACE_MESSAGE_COLOUR_IN(prod, 0, 0x33aaff, "coloured message in prod");
    CTRACE_PLOT_COLOUR_IN(prod, "coloured plot in prod", x, 0x33aaff);
    CTRACE_FRAME_COLOUR_IN(prod, "coloured frame in prod", 0x33aaff);
    CTRACE_SCOPE_IN(prod, "plain in prod");
    CTRACE_BEGIN_IN(prod, a, "begun in prod");
    CTRACE_FRAME_SCOPE_IN(prod, "frames in prod");
    CTRACE_FRAME_BEGIN_IN(prod, b, "frames begun in prod");
    CTRACE_SCOPE_VALUE_IN(dev, "scope in dev", "x", of_dev);
    CTRACE_MESSAGE_IN(dev, 0, "message in dev: %d", of_dev);
    CTRACE_PLOT_IN(dev, "plot in dev", of_dev);
    CTRACE_FRAME_IN(dev, "frame in dev");
    CTRACE_SCOPE_COLOUR_IN(dev, "colour in dev", 0x33aaff);
    CTRACE_SCOPE_VALUE_COLOUR_IN(dev, "value and colour in dev", "x", of_dev, 0x33aaff);
    CTRACE_MESSAGE_COLOUR_IN(dev, 0, 0x33aaff, "coloured message in dev");
    CTRACE_PLOT_COLOUR_IN(dev, "coloured plot in dev", of_dev, 0x33aaff);
    CTRACE_FRAME_COLOUR_IN(dev, "coloured frame in dev", 0x33aaff);
    CTRACE_SCOPE_IN(dev, "plain in dev");
    CTRACE_BEGIN_IN(dev, c, "begun in dev");
    CTRACE_FRAME_SCOPE_IN(dev, "frames in dev");
    CTRACE_FRAME_BEGIN_IN(dev, d, "frames begun in dev");
    CTRACE_END(d);
    CTRACE_END(c);
    CTRACE_END(b);
    CTRACE_END(a);
    return x;
}
int main(void) { return f(0); }
