/* Jump tables, tail calls out of a switch, conditional tail jumps, indirect tail calls, and a
 * loop whose head is a function's entry. Flags decide which of them become jumps; the counts do
 * not depend on that. */
#include "count.h"

COUNTER(dispatch);
COUNTER(case_a);
COUNTER(case_b);
COUNTER(case_c);
COUNTER(inside);
COUNTER(maybe);
COUNTER(slow_path);
COUNTER(through_pointer);
COUNTER(countdown);
COUNTER(other);

FN long case_a(long x) { return COUNT(case_a), x + 1; }
FN long case_b(long x) { return COUNT(case_b), x * 2; }
FN long case_c(long x) { return COUNT(case_c), x ^ 3; }

/* A switch whose cases are tail calls. */
FN long dispatch(int what, long x) {
    COUNT(dispatch);
    switch (what) {
    case 0: return case_a(x);
    case 1: return case_b(x);
    case 2: return case_c(x);
    case 3: return case_a(x + 1);
    case 4: return case_b(x + 2);
    case 5: return case_c(x + 3);
    case 6: return x;
    default: return -x;
    }
}

/* A switch without jumps out of it. */
FN long inside(int what, long x) {
    COUNT(inside);
    long y = x;
    for (int i = 0; i < 3; i++) {
        switch ((what + i) & 7) {
        case 0: y += 5; break;
        case 1: y *= 3; break;
        case 2: y ^= x; break;
        case 3: y -= 7; break;
        case 4: y <<= 1; break;
        case 5: y = ~y; break;
        case 6: y += what; break;
        case 7: y = y * y + 1; break;
        }
        y &= 0xffffff;
    }
    return y;
}

FN long slow_path(long x) { return COUNT(slow_path), x * 5 + 2; }

/* A conditional tail jump, if the compiler makes one. */
FN long maybe(long x) {
    COUNT(maybe);
    if (x & 1)
        return slow_path(x);
    return x;
}

static long (*volatile pointers[3])(long) = {case_a, case_b, case_c};

FN long through_pointer(long x) {
    COUNT(through_pointer);
    return pointers[x % 3](x);
}

/* Without CET and a prologue the loop's head may be the entry itself. */
FN void countdown(volatile long *left) {
    do {
        *left -= 1;
    } while (*left > 0);
}

FN long other(long x) { return COUNT(other), x; }

int main(void) {
    long sum = 0;
    for (int i = 0; i < 400; i++) {
        sum += dispatch(i % 9, i);
        sum += inside(i, i);
        sum += maybe(i);
        sum += through_pointer(i);
        volatile long left = 50;
        calls_countdown++;
        countdown(&left);
        sum += other(left);
    }
    printf("sum %ld\n", sum);
    SHOW(dispatch);
    SHOW(case_a);
    SHOW(case_b);
    SHOW(case_c);
    SHOW(inside);
    SHOW(maybe);
    SHOW(slow_path);
    SHOW(through_pointer);
    SHOW(countdown);
    SHOW(other);
    return 0;
}
