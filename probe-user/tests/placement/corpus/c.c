/* What C compilers make of functions: each prints what it computed, so that a probe that changes
   anything shows. */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))
static volatile int sink;
static jmp_buf back;

NOINLINE int f_recurse(int n) { return n <= 0 ? 0 : 1 + f_recurse(n - 1); }
NOINLINE int f_odd(int n);
NOINLINE int f_even(int n) { return n == 0 ? 1 : f_odd(n - 1); }
NOINLINE int f_odd(int n) { return n == 0 ? 0 : f_even(n - 1); }

NOINLINE int f_switch(int n, const char *s) {
    switch (n) {
    case 0: return strlen(s);
    case 1: return s[0] * 3;
    case 2: sink++; return f_even(n);
    case 3: return puts(s);
    case 4: return atoi(s) + 4;
    case 5: sink += 7; break;
    case 6: return -1;
    case 7: return s[1] ^ 5;
    case 9: return 99;
    default: return 1000 + n;
    }
    return sink;
}

NOINLINE int f_interpret(const unsigned char *code) {
    static void *const jumps[] = {&&add, &&twice, &&negate, &&end};
    int value = 1;
    goto *jumps[*code++];
add: value += 3; goto *jumps[*code++];
twice: value *= 2; goto *jumps[*code++];
negate: value = -value; goto *jumps[*code++];
end: return value;
}

typedef int (*handler)(int);
NOINLINE int h_one(int n) { return n + 1; }
NOINLINE int h_two(int n) { return n * 2; }
NOINLINE int h_three(int n) { return n - 3; }
static handler handlers[] = {h_one, h_two, h_three};
NOINLINE int f_indirect_tail(int which, int n) { return handlers[which](n); }
NOINLINE int f_pointer_tail(handler h, int n) { return h(n); }
NOINLINE int f_conditional_tail(int n) { return n > 10 ? h_one(n) : n; }
NOINLINE void f_empty(void) { __asm__ volatile(""); }
NOINLINE int f_thunk(int n) { return h_three(n); }

__attribute__((cold, noinline)) int f_report(const char *what) { sink++; return printf("cold %s\n", what); }
NOINLINE int f_with_cold(int n) {
    if (__builtin_expect(n == 77, 0)) {
        f_report("seventy-seven");
        for (int i = 0; i < n; i++) sink += i;
        return sink;
    }
    return n * n;
}

NOINLINE int f_loop_at_entry(int n, int *out) {
    do { *out += n; } while (--n);
    return *out;
}
NOINLINE unsigned f_collatz(unsigned n) {
    unsigned steps = 0;
    while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; steps++; }
    return steps;
}

NOINLINE void f_deep_jump(int n) { if (n == 0) longjmp(back, 5); f_deep_jump(n - 1); sink++; }
NOINLINE int f_setjmp(void) {
    volatile int rounds = 0;
    int code = setjmp(back);
    if (++rounds < 4) f_deep_jump(rounds);
    return code * 10 + rounds;
}

NOINLINE int f_alloca(int n) {
    char *buffer = alloca(n);
    memset(buffer, 'x', n);
    buffer[n - 1] = 0;
    return strlen(buffer);
}
NOINLINE int f_varargs(int count, ...) {
    va_list list;
    int sum = 0;
    va_start(list, count);
    while (count--) sum += va_arg(list, int);
    va_end(list);
    return sum;
}
NOINLINE double f_double(double a, float b) { return a * b + a / 3; }
typedef struct { long a, b, c, d; } big;
NOINLINE big f_big(long n) { big r = {n, n + 1, n + 2, n + 3}; return r; }
NOINLINE void *f_caller(void) { return __builtin_return_address(0); }
NOINLINE int f_nested(int n) {
    int twice(int m) { return m * 2 + n; }
    return twice(n) + twice(n + 1);
}
NOINLINE int f_leaf_red_zone(int a, int b) {
    volatile int v[8];
    for (int i = 0; i < 8; i++) v[i] = a + i * b;
    return v[3] + v[7];
}
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
NOINLINE void *f_thread(void *n) {
    long sum = 0;
    for (int i = 0; i < 200; i++) sum += f_switch(i % 11 == 3 ? 4 : i % 11, "12") + f_odd(i);
    (void)n;
    return (void *)sum;
}

int main(int argc, char **argv) {
    int out = 0, numbers[] = {5, 2, 9, 1, 7};
    static const unsigned char code[] = {0, 1, 2, 0, 1, 3};
    (void)argv;
    printf("%d %d %d\n", f_recurse(200), f_even(41), f_odd(41));
    for (int i = -1; i < 11; i++) printf("%d ", f_switch(i, "42"));
    printf("\n%d\n", f_interpret(code));
    for (int i = 0; i < 3; i++) printf("%d %d ", f_indirect_tail(i, 20), f_pointer_tail(handlers[i], 30));
    for (int i = 8; i < 13; i++) printf("%d %d ", f_conditional_tail(i), f_thunk(i));
    f_empty();
    printf("\n%d %d\n", f_with_cold(6), f_with_cold(77));
    printf("%d %u %d %d\n", f_loop_at_entry(50, &out), f_collatz(27), f_setjmp(), f_alloca(300));
    printf("%d %.6f %ld %d %d\n", f_varargs(4, 1, 2, 3, 4), f_double(2.5, 1.5f), f_big(7).d, f_nested(3), f_leaf_red_zone(2, 3));
    char *caller = f_caller(), *self = (char *)main;
    printf("%d\n", caller > self && caller < self + 4096);
    qsort(numbers, 5, sizeof *numbers, compare);
    for (int i = 0; i < 5; i++) printf("%d ", numbers[i]);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, f_thread, NULL);
    for (int i = 0; i < 4; i++) { void *sum; pthread_join(threads[i], &sum); printf("%d ", sum != NULL); }
    printf("\n");
    return 40 + argc;
}
