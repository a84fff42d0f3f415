/* Functions that --gc-sections drops, with their scopes. */
#include "ctrace.h"

int used(int x);
int used(int x) {
    CTRACE_SCOPE_COLOUR("kept", 0x33aaff);
    return x;
}
int missing(int x);
int dropped(int x);
int dropped(int x) {
    CTRACE_SCOPE("dropped");
    CTRACE_SCOPE_COLOUR("dropped, too", 0x33aaff);
    return missing(x); /* is nowhere */
}
int main(void) { return used(0); }
