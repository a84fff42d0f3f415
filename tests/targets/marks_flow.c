/* All ways through and out of scopes. Usage: marks_flow [ROUNDS=100] */
#include "marks.h"
#include <setjmp.h>

COUNTER(descend);
COUNTER(early);
COUNTER(late);
COUNTER(loop);
COUNTER(catcher);
COUNTER(diver);
COUNTER(leaper);

static volatile long sink;
static jmp_buf back;

FN void descend(int depth) {
    CTRACE_FUNCTION;
    COUNT(descend);
    if (depth > 0)
        descend(depth - 1);
    sink++;
}

FN void early(void) {
    CTRACE_BEGIN(first, "early");
    COUNT(early);
    sink++;
    CTRACE_END(first);
    CTRACE_END(first);
    CTRACE_BEGIN(second, "late");
    COUNT(late);
    sink++;
}

FN long loop(long n) {
    for (long i = 0;; i++) {
        CTRACE_SCOPE("loop");
        COUNT(loop);
        if (i % 3 == 0)
            continue;
        if (i == n)
            return i;
        if (i == 20)
            break;
        if (i % 3 == 1)
            goto next;
        sink++;
    next:;
    }
    return 0;
}

FN void leaper(void) {
    CTRACE_FUNCTION;
    COUNT(leaper);
    longjmp(back, 1);
}

FN void diver(int depth) {
    CTRACE_FUNCTION;
    COUNT(diver);
    if (depth > 0)
        diver(depth - 1);
    else
        leaper();
    sink++;
}

FN void catcher(void) {
    CTRACE_FUNCTION;
    COUNT(catcher);
    if (setjmp(back) == 0)
        diver(4);
}

int main(int argc, char **argv) {
    long rounds = number(argc, argv, 1, 100);
    for (long i = 0; i < rounds; i++) {
        descend(200);
        early();
        loop(i % 30);
        catcher();
    }
    SHOW(descend);
    SHOW(early);
    SHOW(late);
    SHOW(loop);
    SHOW(catcher);
    SHOW(diver);
    SHOW_UNTIMED(diver, calls_diver);
    SHOW(leaper);
    SHOW_UNTIMED(leaper, calls_leaper);
    return 0;
}
