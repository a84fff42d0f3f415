/* Every way to leave a stack without a library, in turns and in several threads: coroutines by a
 * few instructions, those that go on in another thread each time, those of Boost.Context, and
 * `longjmp` over frames. While a coroutine rests, no return address on its stack is replaced.
 * Usage: leave_stacks [ROUNDS=20] */
#include "count.h"
#include "jump_fcontext.h"
#include "switch_stack.h"
#include <pthread.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

enum { STACK = 32768, SAVED = 6 };

struct coroutine {
    void *rests, *resumer;
    char *memory;
    long sum;
    int is_done;
};

/* Which way the running coroutine of the thread goes. */
static __thread struct coroutine *running;
static __thread int by_jump;

static struct coroutine *made(void (*body)(void), void (*jumped)(transfer)) {
    struct coroutine *new = calloc(1, sizeof *new);
    new->memory = aligned_alloc(64, STACK);
    if (jumped) {
        new->rests = make_fcontext(new->memory + STACK - 64, jumped);
        return new;
    }
    uint64_t *top = (uint64_t *)(new->memory + STACK - 64);
    *--top = 0; /* where body would return to */
    *--top = (uint64_t)body;
    for (int saved = 0; saved < SAVED; saved++)
        *--top = 0;
    new->rests = top;
    return new;
}

static void freed(struct coroutine *old) {
    free(old->memory);
    free(old);
}

/* A thread-local address may change over a switch, so it is taken anew. */
FN struct coroutine *current(void) { return running; }

FN void yield_(void) {
    struct coroutine *own = current();
    if (by_jump) {
        transfer back = jump_fcontext(own->resumer, NULL);
        current()->resumer = back.from;
    } else {
        switch_stack(&own->rests, own->resumer);
    }
    __asm__ volatile("");
}

/* Its calls begin in one turn and end in another. */
FN long dive(long depth) {
    if (depth % 2 == 0)
        yield_();
    long below = depth == 0 ? 1 : dive(depth - 1);
    KEEP(below);
    return below * 3 + depth;
}

FN void work(void) {
    for (int i = 1; i <= 4; i++) {
        long got = dive(i);
        current()->sum += got * i;
    }
    current()->is_done = 1;
}

static void body(void) {
    work();
    for (;;)
        yield_();
}

static void jumped(transfer from) {
    current()->resumer = from.from;
    body();
}

FN void resume(struct coroutine *one) {
    running = one;
    if (by_jump)
        one->rests = jump_fcontext(one->rests, NULL).from;
    else
        switch_stack(&one->resumer, one->rests);
    __asm__ volatile("");
}

/* Where the kernel lets replaced return addresses lead, or 0. */
static uint64_t trampoline(void) {
    char line[512];
    uint64_t start = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "[uprobes]"))
            start = strtoull(line, NULL, 16);
    if (maps)
        fclose(maps);
    return start;
}

/* Replaced return addresses on the stack of a coroutine that rests, by its chain of frames. Both
 * ways save the frame pointer below the return address. */
static long replaced(const struct coroutine *one, uint64_t by) {
    const uint64_t *frame = (const uint64_t *)one->rests + SAVED - 1;
    long found = 0;
    while (by && (const char *)frame > one->memory && (const char *)(frame + 2) < one->memory + STACK) {
        found += frame[1] == by;
        frame = (const uint64_t *)frame[0];
    }
    return found;
}

static long hijacked;

/* Some coroutines take turns; the stacks of those that rest are looked at. */
static long turns(int jumps) {
    enum { EACH = 3 };
    struct coroutine *all[EACH];
    long sum = 0, left = EACH, found = 0;
    by_jump = jumps;
    for (int i = 0; i < EACH; i++)
        all[i] = made(body, jumps ? jumped : NULL);
    for (int turn = 0; left; turn++) {
        left = 0;
        for (int i = 0; i < EACH; i++)
            if (!all[i]->is_done) {
                resume(all[i]);
                left++;
            }
        if (turn == 3) {
            uint64_t by = trampoline();
            for (int i = 0; i < EACH; i++)
                found += replaced(all[i], by);
        }
    }
    for (int i = 0; i < EACH; i++) {
        sum += all[i]->sum * (i + 1);
        freed(all[i]);
    }
    __atomic_fetch_add(&hijacked, found, __ATOMIC_RELAXED);
    return sum;
}

static void *of_thread(void *jumps) { return (void *)turns(jumps != NULL); }

static long in_threads(int jumps) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    long sum = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, of_thread, jumps || i % 2 ? "" : NULL);
    for (int i = 0; i < THREADS; i++) {
        void *one;
        pthread_join(threads[i], &one);
        sum += (long)one;
    }
    return sum;
}

struct leg {
    struct coroutine *one;
    int jumps;
};

static void *next_leg(void *of) {
    struct leg *leg = of;
    by_jump = leg->jumps;
    resume(leg->one);
    return NULL;
}

/* A coroutine goes on in a new thread each time. */
static long migrates(int jumps) {
    struct leg leg = {made(body, jumps ? jumped : NULL), jumps};
    while (!leg.one->is_done) {
        pthread_t thread;
        pthread_create(&thread, NULL, next_leg, &leg);
        pthread_join(thread, NULL);
    }
    long sum = leg.one->sum;
    freed(leg.one);
    return sum;
}

static jmp_buf landing;

FN long leap(long depth) {
    if (depth == 0)
        longjmp(landing, 5);
    long below = leap(depth - 1);
    KEEP(below);
    return below + 1;
}

FN long leaps(int times) {
    volatile long sum = 0;
    for (volatile int i = 0; i < times; i++) {
        int value = setjmp(landing);
        sum += value ? value : leap(6);
    }
    return sum;
}

FN long round_of(int kind) {
    static long (*const kinds[])(int) = {turns, in_threads, migrates, turns, migrates, leaps};
    static const int how[] = {0, 0, 0, 1, 1, 7};
    long value = kinds[kind](how[kind]);
    KEEP(value);
    return value;
}

int main(int argc, char **argv) {
    long sums[6] = {0};
    for (long round = number(argc, argv, 1, 20); round > 0; round--) {
        for (int kind = 0; kind < 6; kind++)
            sums[kind] += round_of(kind);
        usleep(8000);
    }
    for (int kind = 0; kind < 6; kind++)
        printf("sum %ld\n", sums[kind]);
    printf("replaced return addresses on stacks that rest %ld\n", hijacked);
    return 0;
}
