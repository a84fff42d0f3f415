/* Names of all kinds, groups and flags, for the driver to find in the file. Never run. C11 and C++17. */
#include "ctrace.h"

#define LITERAL "by macro"
static const char array[] = "by array";

int plain(int x);
int plain(int x) {
    CTRACE_FUNCTION;
    CTRACE_SCOPE("plain name");
    CTRACE_SCOPE("quote \" backslash \\ apostrophe '");
    CTRACE_SCOPE("percent %d %% %c[line] %=");
    CTRACE_SCOPE("braces {a|b} }{");
    CTRACE_SCOPE("dollar $1 # // /* ; \t tab");
    CTRACE_SCOPE("Umläute ß 日本 🦀");
    CTRACE_SCOPE("");
    CTRACE_SCOPE("one " "after another");
    CTRACE_SCOPE(LITERAL);
    CTRACE_SCOPE(array);
    CTRACE_SCOPE_IN(prod, "in prod");
    CTRACE_SCOPE_IN(dev, "in dev");
    CTRACE_BEGIN_IN(net_io, part, "in net_io");
    CTRACE_END(part);
    return x;
}
int grouped(int x);
int grouped(int x) {
    CTRACE_FUNCTION_IN(dev);
    return x;
}
int main(void) { return plain(0) + grouped(0); }
