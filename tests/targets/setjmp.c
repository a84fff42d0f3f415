/* The setjmp family called once and returned from twice; likewise getcontext and setcontext. If
 * linked statically, the C library's own __sigsetjmp is a function that a glob can match. */
#include "count.h"
#include <setjmp.h>
#include <ucontext.h>

COUNTER(twice);
COUNTER(signal_twice);
COUNTER(context_twice);

FN int twice(int x) {
    COUNT(twice);
    jmp_buf here;
    volatile int passes = 0;
    int value = setjmp(here);
    passes++;
    if (value < 3)
        longjmp(here, value + 1);
    return passes * 10 + x;
}

FN int signal_twice(int x) {
    COUNT(signal_twice);
    sigjmp_buf here;
    volatile int passes = 0;
    int value = sigsetjmp(here, 1);
    passes++;
    if (value < 2)
        siglongjmp(here, value + 1);
    return passes * 100 + x;
}

FN int context_twice(int x) {
    COUNT(context_twice);
    ucontext_t here;
    volatile int passes = 0;
    getcontext(&here);
    passes++;
    if (passes < 4)
        setcontext(&here);
    return passes * 1000 + x;
}

int main(void) {
    long sum = 0;
    for (int i = 0; i < 200; i++)
        sum += twice(i) + signal_twice(i) + context_twice(i);
    printf("sum %ld\n", sum);
    SHOW(twice);
    SHOW(signal_twice);
    SHOW(context_twice);
    return 0;
}
