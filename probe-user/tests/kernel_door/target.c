// The program under trace. It waits for a line on stdin, does what its argument says, and prints
// what it counted.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) long g(long x) {
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}

__attribute__((noinline)) long f(long x) {
    long y = g(x);
    __asm__ volatile("" : "+r"(y));
    return y + 1;
}

static long calls(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += f(i);
    return sum;
}

static void *thread(void *n) {
    prctl(PR_SET_NAME, "worker");
    calls((long)n);
    return 0;
}

#define CONDITIONS(X) X(o) X(no) X(b) X(ae) X(e) X(ne) X(be) X(a) X(s) X(ns) X(p) X(np) X(l) X(ge) X(le) X(g)
#define DECLARE(cc) extern long jump_##cc(unsigned long flags);
CONDITIONS(DECLARE)

static void conditions(void) {
    static long (*const jumps[])(unsigned long) = {
#define NAME(cc) jump_##cc,
        CONDITIONS(NAME)
    };
    for (int j = 0; j < 16; j++) {
        long taken = 0;
        for (unsigned bits = 0; bits < 32; bits++)
            taken += jumps[j]((bits & 1) | (bits & 2) << 1 | (bits & 4) << 4 | (bits & 8) << 4 | (bits & 16) << 7);
        printf("%ld\n", taken);
    }
}

extern long by_register(void *to), by_table(long index), by_pointer(void);
extern char inside_register[], outside[];

static void indirect(void) {
    long out = 0;
    for (int i = 0; i < 10; i++) out += by_register(inside_register);
    for (int i = 0; i < 7; i++) out += by_register(outside);
    printf("%ld\n", out), out = 0;
    for (int i = 0; i < 30; i++) out += by_table(i % 3);
    printf("%ld\n", out), out = 0;
    for (int i = 0; i < 5; i++) out += by_pointer();
    printf("%ld\n", out);
}

extern void with_values(const long *table, long index, const char *edge);

/* `edge` is the last byte that can be read. */
static void values(long n) {
    static const long table[] = {0x7172737475767778, -2, 0x0102030405060708};
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 0xc3, page);
    mprotect(pages + page, page, PROT_NONE);
    for (long i = 0; i < n; i++) with_values(table, i % 3, pages + page - 1);
}

extern const char *labelled(char byte, const char *text, long, long, long, long, long on_stack);

/* Copies bytes to the end of a page, behind which nothing can be read. */
static char *at_edge(const char *bytes, size_t length) {
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + page, page, PROT_NONE);
    return memcpy(pages + page - length, bytes, length);
}

/* Texts that are short, as long as fits, longer, empty, and not there. */
static void labels(void) {
    char *edge = at_edge("abc", 3);
    char fits[65], longer[101];
    memset(fits, 'f', 64), fits[64] = 0;
    memset(longer, 'l', 100), longer[100] = 0;
    const char *texts[] = {"key", fits, longer, "\xff", "", edge, 0};
    for (int i = 0; i < 7; i++) labelled(-i, texts[i], 1, 2, 3, 4, 0x3ff8000000000000 + i);
}

/* Texts of 29, 30 and 31 bytes, one that ends with its page, and one that begins like an empty one. */
static void lengths(void) {
    char *edge = at_edge("abc", 4);
    char all[3][32];
    for (int i = 0; i < 3; i++) memset(all[i], 'a', 29 + i), all[i][29 + i] = 0;
    const char *texts[] = {all[0], all[1], all[2], edge, "", "\x01"};
    for (int i = 0; i < 6; i++) labelled(i, texts[i], 1, 2, 3, 4, -i);
}

/* Texts with their lengths: with a 0 inside, shorter and longer than fits, empty and not there, up to
 * the end of a page and beyond, and of an absurd length. */
static void spans(void) {
    char *edge = at_edge("abc", 3);
    char fits[65], longer[101];
    memset(fits, 'f', 64), fits[64] = 0;
    memset(longer, 'l', 100), longer[100] = 0;
    const char *texts[] = {"a\0b", fits, fits, longer, 0, edge, edge, 0, longer};
    long lengths[] = {3, 63, 64, 65, 0, 3, 4, 5, -1};
    for (int i = 0; i < 9; i++) labelled(i, texts[i], lengths[i], 1, 2, 3, 2);
}

__attribute__((noinline)) void rests(void) {
    usleep(1000);
    __asm__ volatile("");
}

static pthread_barrier_t barrier;

/* Calls a function once. Behind it, it sleeps, and works beside another such thread on one processor. */
static void *spins(void *n) {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    sched_setaffinity(0, sizeof first, &first);
    f(1);
    for (long i = 0; i < (long)n; i++) usleep(1000);
    pthread_barrier_wait(&barrier);
    struct timespec t;
    /* It is hardly ever in a system call when it is preempted. */
    do {
        for (volatile int i = 0; i < 1000000; i++) continue;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while (t.tv_sec == 0 && t.tv_nsec < 200000000);
    return 0;
}

int main(int argc, char **argv) {
    long n = argc > 2 ? atol(argv[2]) : 0;
    const char *what = argv[1];
    setvbuf(stdout, 0, _IOLBF, 0);
    setvbuf(stdin, 0, _IONBF, 0);
    if (getchar() == EOF) return 1;
    if (!strcmp(what, "calls")) {
        printf("%ld\n", calls(n));
    } else if (!strcmp(what, "twice")) {
        calls(n);
        puts("half");
        getchar();
        calls(n);
    } else if (!strcmp(what, "threads")) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, thread, (void *)n);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    } else if (!strcmp(what, "fork")) {
        for (int i = 0; i < 3; i++) {
            pid_t child = fork();
            if (!child) {
                calls(n);
                _exit(3);
            }
            waitpid(child, 0, 0);
        }
        calls(n);
    } else if (!strcmp(what, "exec")) {
        calls(n);
        execl(argv[3], argv[3], "calls", argv[2], (char *)0);
    } else if (!strcmp(what, "conditions")) {
        conditions();
    } else if (!strcmp(what, "indirect")) {
        indirect();
    } else if (!strcmp(what, "values")) {
        values(n);
    } else if (!strcmp(what, "labels")) {
        labels();
    } else if (!strcmp(what, "lengths")) {
        lengths();
    } else if (!strcmp(what, "spans")) {
        spans();
    } else if (!strcmp(what, "rests")) {
        for (long i = 0; i < n; i++) rests();
    } else if (!strcmp(what, "spins")) {
        pthread_t threads[2];
        pthread_barrier_init(&barrier, 0, 2);
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, spins, (void *)n);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    } else if (!strcmp(what, "forever")) {
        for (long i = 0;; i++)
            if (f(i) != i + 2) return 2;
    }
    return 0;
}
