/* longjmp over scopes: their ends are missing, but the stack pointers show them. */
#include "support.h"
#include <setjmp.h>

static jmp_buf place;
static __attribute__((noinline)) void deep(int n) {
    CTRACE_SCOPE("deep");
    if (n == 0) longjmp(place, 1);
    if (n > 0) deep(n - 1);
}
static __attribute__((noinline)) int shallow(int x) {
    CTRACE_SCOPE("shallow");
    if (setjmp(place) == 0) deep(x);
    CTRACE_SCOPE("after");
    return x;
}

int main(void) {
    capture();
    switch_to(NULL, 1);
    shallow(3);
    collect_all();
    CHECK(event_count == 8); /* shallow, 4 deep, after in and out, shallow out */
    CHECK(events[7].exit && events[7].site == events[0].site && events[7].sp == events[0].sp);
    for (int i = 1; i <= 4; i++) CHECK(!events[i].exit && events[i].sp < events[5].sp);
    return 0;
}
