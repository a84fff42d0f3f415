/* Obeys lines on its standard input, and answers each with a line.
 *
 *   calls NAME N    enters that scope N times
 *   semaphores      tells which scopes are on: NAME=VALUE...
 *   spin THREADS    starts threads in and out of scopes, until `stop`, which returns their turns
 *   work N          calls a plain function N times
 *   end             ends; also at the end of the input
 */
#include "marks.h"
#include <unistd.h>

static volatile long sink;

FN void in_alpha(void) { CTRACE_SCOPE_IN(prod, "alpha"); sink = sink + 1; }
FN void in_beta(void) { CTRACE_SCOPE_IN(prod, "beta"); sink = sink + 1; }
FN void in_gamma(void) { CTRACE_SCOPE_IN(dev, "gamma"); sink = sink + 1; }
FN void in_delta(void) { CTRACE_SCOPE("delta"); sink = sink + 1; }
FN void in_turn(void) { CTRACE_SCOPE("turn"); CTRACE_SCOPE("half"); }

/* A hundred more, m00 to m99. */
#define ONE(n) FN void in_m##n(void) { CTRACE_SCOPE_IN(many, "m" #n); sink = sink + 1; }
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) \
    ONE(n##8) ONE(n##9)
TEN(0) TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9)

FN long worked(long x) { return x + 1; }

static const struct {
    const char *name;
    void (*run)(void);
} scopes[] = {
    {"alpha", in_alpha}, {"beta", in_beta}, {"gamma", in_gamma}, {"delta", in_delta},
    {"m00", in_m00},     {"m07", in_m07},   {"m42", in_m42},     {"m99", in_m99},
};

static int stop;
static pthread_t threads[16];
static long running;

static void *spin(void *unused) {
    unsigned long turns = 0;
    (void)unused;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        in_turn();
        /* Slow down to a rate at which nothing need be lost. */
        if (++turns % 16 == 0)
            marks_doze(1);
    }
    return (void *)turns;
}

static void answer(const char *line) {
    char name[32] = "";
    long n = 0;
    if (sscanf(line, "calls %31s %ld", name, &n) == 2) {
        for (unsigned i = 0; i < sizeof scopes / sizeof *scopes; i++)
            if (strcmp(scopes[i].name, name) == 0)
                for (long call = 0; call < n; call++)
                    scopes[i].run();
        printf("done\n");
    } else if (strcmp(line, "semaphores\n") == 0) {
        printf("semaphores");
        marks_print_semaphores();
        printf("\n");
    } else if (sscanf(line, "spin %ld", &n) == 1 && n <= 16) {
        stop = 0;
        for (running = 0; running < n; running++)
            pthread_create(&threads[running], NULL, spin, NULL);
        printf("done\n");
    } else if (strcmp(line, "stop\n") == 0) {
        unsigned long turns = 0;
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        while (running > 0) {
            void *result;
            pthread_join(threads[--running], &result);
            turns += (unsigned long)result;
        }
        printf("turns %lu\n", turns);
    } else if (sscanf(line, "work %ld", &n) == 1) {
        long x = 0;
        for (long i = 0; i < n; i++)
            x = worked(x);
        printf("worked %ld\n", x);
    } else {
        printf("what?\n");
    }
    fflush(stdout);
}

int main(void) {
    char line[256];
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n") != 0)
        answer(line);
    return 0;
}
