/* Functions that --gc-sections drops, with their scopes. */
#include "ctrace.h"

int used(int x);
int used(int x) {
    CTRACE_SCOPE("kept");
    return x;
}
int missing(int x);
int dropped(int x);
int dropped(int x) {
    CTRACE_SCOPE("dropped");
    return missing(x); /* is nowhere */
}
int main(void) { return used(0); }
