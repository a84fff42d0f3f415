/* Marker scopes, for benchmarks of their cost, their rate and their memory.
 * Usage: scopes cost THREADS CALLS_PER_SECOND
 *        scopes rate THREADS CALLS_PER_SECOND SECONDS     (0 a second: at full speed)
 *        scopes burst THREADS CALLS_PER_THREAD            (at full speed)
 *        scopes buffers USERS IDLERS
 * `cost` prints `bare_ns`, `two_rdtsc_ns` and `scope_ns`: the CPU time per call of three functions
 * that differ only as these names say. It is the median over stretches of all threads, which take
 * turns. `rate` prints `calls`, and as `calls_per_second` the slowest thread's rate times the
 * number of threads. `burst` prints the same. `buffers` prints `kib`: the memory for buffers of USERS
 * threads that use a scope, and of IDLERS threads that do not. */
#include "count.h"
#include "ctrace.h"
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_THREADS 64
#define CALLS 10000
#define ROUNDS 300

static double clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void wait_until(double ns) {
    struct timespec t = {(time_t)(ns / 1e9), (long)(ns - (double)(time_t)(ns / 1e9) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

FN unsigned long bare(unsigned long x) { return x + 1; }

FN unsigned long two_rdtsc(unsigned long x) {
    unsigned long time = __builtin_ia32_rdtsc();
    KEEP(time);
    time = __builtin_ia32_rdtsc();
    KEEP(time);
    return x + 1;
}

FN unsigned long scoped(unsigned long x) {
    CTRACE_SCOPE("scoped");
    KEEP(x);
    return x + 1;
}

typedef unsigned long function(unsigned long);
static function *const functions[] = {bare, two_rdtsc, scoped};
enum { KINDS = sizeof functions / sizeof *functions };

static long threads;
static double rate;
static double took[KINDS][MOST_THREADS * ROUNDS];

/* Runs one stretch. Its CPU time is this thread's, without other threads' turns. */
static double stretch(function *volatile *called) {
    unsigned long x = 0;
    double start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < CALLS; i++)
        x = (*called)(x);
    KEEP(x);
    return (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / CALLS;
}

static void *cost(void *argument) {
    long thread = (long)argument;
    double start = clock_ns(CLOCK_MONOTONIC);
    for (int round = 0; round < ROUNDS; round++) {
        for (int kind = 0; kind < KINDS; kind++) {
            function *volatile called = functions[kind];
            took[kind][thread * ROUNDS + round] = stretch(&called);
        }
        if (rate > 0)
            wait_until(start + (round + 1) * (double)(CALLS * threads) / rate * 1e9);
    }
    return NULL;
}

FN unsigned long step(unsigned long x) {
    CTRACE_SCOPE("step");
    KEEP(x);
    return x + 1;
}

/* Makes five calls. */
FN unsigned long turn(unsigned long x) {
    CTRACE_SCOPE("turn");
    return step(step(step(step(x)))) + 1;
}

static double seconds;
static unsigned long calls[MOST_THREADS];
static double needed[MOST_THREADS];

static long burst_calls;

static void *burst(void *argument) {
    long thread = (long)argument;
    double start = clock_ns(CLOCK_MONOTONIC);
    unsigned long x = 0;
    while ((long)x < burst_calls)
        x = turn(x);
    calls[thread] = x;
    needed[thread] = clock_ns(CLOCK_MONOTONIC) - start;
    return NULL;
}

static void *at_rate(void *argument) {
    long thread = (long)argument;
    double start = clock_ns(CLOCK_MONOTONIC), now = start;
    unsigned long x = 0;
    while (now - start < seconds * 1e9) {
        for (int i = 0; i < 200; i++)
            x = turn(x);
        double due = start + (double)x * (double)threads / rate * 1e9;
        now = clock_ns(CLOCK_MONOTONIC);
        /* Sleep only if a millisecond ahead: each sleep takes longer than asked for. */
        if (rate > 0 && due > now + 1e6)
            wait_until(due - 0.5e6);
    }
    calls[thread] = x;
    needed[thread] = clock_ns(CLOCK_MONOTONIC) - start;
    return NULL;
}

static pthread_barrier_t all_there, all_seen;

static void *user(void *argument) {
    scoped((unsigned long)argument);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_seen);
    return NULL;
}

static void *idler(void *argument) {
    bare((unsigned long)argument);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_seen);
    return NULL;
}

/* Returns KiB of anonymous memory that forks wipe. Only marker buffers are such memory. */
static long wiped_memory(void) {
    char line[512];
    long size = 0, sum = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        sscanf(line, "Size: %ld kB", &size);
        if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " wf"))
            sum += size;
    }
    if (maps)
        fclose(maps);
    return sum;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, long count) {
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 2];
}

static void run(long count, void *(*body)(void *), pthread_t *ids) {
    for (long i = 0; i < count; i++)
        if (pthread_create(&ids[i], NULL, body, (void *)i) != 0)
            exit(1);
}

static void join(long count, const pthread_t *ids) {
    for (long i = 0; i < count; i++)
        pthread_join(ids[i], NULL);
}

int main(int argc, char **argv) {
    pthread_t ids[2 * MOST_THREADS];
    threads = number(argc, argv, 2, 1);
    long third = number(argc, argv, 3, 0);
    if (argc < 4 || threads < 1 || threads > MOST_THREADS || third < 0)
        return 2;
    rate = (double)third;
    if (strcmp(argv[1], "cost") == 0) {
        run(threads, cost, ids);
        join(threads, ids);
        static const char *const names[] = {"bare_ns", "two_rdtsc_ns", "scope_ns"};
        for (int kind = 0; kind < KINDS; kind++)
            printf("%s %.3f\n", names[kind], median(took[kind], threads * ROUNDS));
        printf("calls %ld\n", threads * ROUNDS * CALLS);
    } else if (strcmp(argv[1], "rate") == 0 || strcmp(argv[1], "burst") == 0) {
        seconds = (double)number(argc, argv, 4, 1);
        burst_calls = third;
        run(threads, strcmp(argv[1], "rate") == 0 ? at_rate : burst, ids);
        join(threads, ids);
        unsigned long sum = 0;
        double slowest = 1e18;
        for (long i = 0; i < threads; i++) {
            double reached = (double)calls[i] / needed[i] * 1e9;
            sum += calls[i];
            slowest = reached < slowest ? reached : slowest;
        }
        printf("calls %lu\ncalls_per_second %.0f\n", sum, slowest * (double)threads);
    } else {
        if (third > MOST_THREADS)
            return 2;
        long all = threads + third;
        pthread_barrier_init(&all_there, NULL, (unsigned)all + 1);
        pthread_barrier_init(&all_seen, NULL, (unsigned)all + 1);
        run(threads, user, ids);
        run(third, idler, ids + threads);
        pthread_barrier_wait(&all_there);
        printf("kib %ld\n", wiped_memory());
        pthread_barrier_wait(&all_seen);
        join(all, ids);
    }
    return 0;
}
