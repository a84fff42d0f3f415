/* Pairs of USDT probes: in one function and in several, with ends that never come, ends without a
 * start, calls that overlap, and notes that make no sense as a pair. Prints for each pair
 * `pair NAME CALLS TIMED UNTIMED HEADLESS LOW HIGH`: the last two are bounds on the sum of the timed
 * durations, in nanoseconds, from the program's own clock. Then `hits NAME N` for some probes, `asked N`:
 * the sum of the first argument of query__start, and `raised N`: how often it was passed with both
 * semaphores up.
 * Usage: usdt_pairs [ROUNDS=100] */
#include "count.h"
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include <setjmp.h>
#include <stdint.h>
#include <time.h>

#define SEMAPHORE(name)                                                                                  \
    __extension__ unsigned short pairs_##name##_semaphore __attribute__((unused, section(".probes")))
SEMAPHORE(batch__start);
SEMAPHORE(batch__done);
SEMAPHORE(query__start);
SEMAPHORE(query__done);
SEMAPHORE(job_begin);
SEMAPHORE(job_end);
SEMAPHORE(tx__start);
SEMAPHORE(tx__commit);
SEMAPHORE(tx__abort);
SEMAPHORE(call__entry);
SEMAPHORE(call__return);
SEMAPHORE(lap__start);
SEMAPHORE(lap__done);
SEMAPHORE(unit__ready);
SEMAPHORE(unit__gone);

/* A note as sys/sdt.h writes it, for the nop at label 990. */
#define NOTE(name)                                                                                       \
    ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n"              \
    "991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b, 0, 0\n.asciz \"pairs\"\n"                \
    ".asciz \"" name "\"\n.asciz \"\"\n994: .balign 4\n.popsection\n"

struct pair {
    const char *name;
    long calls, timed, untimed, headless;
    uint64_t low, high;
};
static struct pair batch = {.name = "batch"}, query = {.name = "query"}, job = {.name = "job"},
                   tx = {.name = "tx"}, call = {.name = "call"}, lap = {.name = "lap"},
                   many = {.name = "many"}, unit = {.name = "unit"};
static long twins, both_raised, asked;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Notes a call whose start is between the first two times, and whose end is between the others. */
static void timed(struct pair *pair, uint64_t before, uint64_t began, uint64_t ended, uint64_t after) {
    pair->calls++;
    pair->timed++;
    pair->low += ended - began;
    pair->high += after - before;
}

FN void work(long steps) {
    for (volatile long i = 0; i < 100 * steps; i++)
        ;
}

static jmp_buf error;

/* Both ends are in one function, and one of them in two places. Every fifth call never ends. */
FN void make_query(long i) {
    uint64_t before = now();
    STAP_PROBE2(pairs, query__start, i, -2 * i);
    uint64_t began = now();
    asked += i;
    both_raised += pairs_query__start_semaphore && pairs_query__done_semaphore;
    if (i % 5 == 4) {
        query.calls++;
        query.untimed++;
        longjmp(error, 1);
    }
    if (i % 7 == 1)
        make_query(0);
    work(i % 3);
    uint64_t ended = now();
    if (i % 2)
        STAP_PROBE1(pairs, query__done, i);
    else
        STAP_PROBE1(pairs, query__done, -i);
    timed(&query, before, began, ended, now());
}

/* Contains queries. */
FN void make_batch(long i) {
    uint64_t before = now();
    STAP_PROBE(pairs, batch__start);
    uint64_t began = now();
    if (setjmp(error) == 0)
        make_query(i);
    uint64_t ended = now();
    STAP_PROBE(pairs, batch__done);
    timed(&batch, before, began, ended, now());
}

/* The ends of the following pairs are in functions of their own, some of them deeper. */
FN void begin_job(void) { STAP_PROBE(pairs, job_begin); }
FN void end_job(long depth) {
    char room[64];
    KEEP(depth);
    if (depth > 0)
        end_job(depth - 1);
    else
        STAP_PROBE(pairs, job_end);
    __asm__ volatile("" ::"r"(room) : "memory");
}
FN void start_tx(void) { STAP_PROBE(pairs, tx__start); }
FN void commit_tx(void) { STAP_PROBE(pairs, tx__commit); }
FN void abort_tx(void) { STAP_PROBE(pairs, tx__abort); }
FN void enter_call(void) { STAP_PROBE(pairs, call__entry); }
FN void leave_call(void) { STAP_PROBE(pairs, call__return); }
FN void start_lap(void) { STAP_PROBE(pairs, lap__start); }
FN void end_lap(void) { STAP_PROBE(pairs, lap__done); }
FN void make_ready(void) { STAP_PROBE(pairs, unit__ready); }
FN void let_go(void) { STAP_PROBE(pairs, unit__gone); }

FN void make_job(long i) {
    uint64_t before = now();
    begin_job();
    uint64_t began = now();
    work(i % 4);
    uint64_t ended = now();
    end_job(i % 3);
    timed(&job, before, began, ended, now());
}

/* Contains a job, and ends in another way than it began. */
FN void make_tx(long i) {
    uint64_t before = now();
    start_tx();
    uint64_t began = now();
    make_job(i);
    uint64_t ended = now();
    if (i % 3)
        commit_tx();
    else
        abort_tx();
    timed(&tx, before, began, ended, now());
}

/* Calls of a language, inside each other on one stack frame. */
FN void make_calls(long depth) {
    uint64_t before[8], began[8];
    for (long i = 0; i < depth; i++) {
        before[i] = now();
        enter_call();
        began[i] = now();
        work(1);
    }
    for (long i = depth - 1; i >= 0; i--) {
        uint64_t ended = now();
        leave_call();
        timed(&call, before[i], began[i], ended, now());
    }
}

/* The first begun is the first to end: nothing tells which end belongs to which start. */
FN void overlap(void) {
    start_lap();
    start_lap();
    end_lap();
    end_lap();
    lap.calls += 2;
    lap.untimed += 2;
    lap.headless++;
}

/* A hundred places of one name, of which the last alone is followed by an end. */
FN void pass_many(void) {
    __asm__ volatile(".rept 100\n990: nop\n" NOTE("many__start") ".endr\n990: nop\n" NOTE("many__done"));
    many.calls += 100;
    many.timed++;
    many.untimed += 99;
    many.high = UINT64_MAX;
}

/* A start and an end at one place. */
FN void pass_twin(void) {
    __asm__ volatile("990: nop\n" NOTE("twin__start") NOTE("twin__done"));
    twins++;
}

FN void make_unit(long i) {
    uint64_t before = now();
    make_ready();
    uint64_t began = now();
    work(i % 2);
    uint64_t ended = now();
    let_go();
    timed(&unit, before, began, ended, now());
}

static void show(const struct pair *pair) {
    printf("pair %s %ld %ld %ld %ld %lu %lu\n", pair->name, pair->calls, pair->timed, pair->untimed,
           pair->headless, (unsigned long)pair->low, (unsigned long)pair->high);
}

int main(int argc, char **argv) {
    long rounds = number(argc, argv, 1, 100);
    /* Nothing has begun. */
    end_job(0);
    job.headless++;
    for (long i = 0; i < rounds; i++) {
        make_batch(i);
        make_tx(i);
        make_calls(1 + i % 8);
        overlap();
        pass_twin();
        make_unit(i);
    }
    pass_many();
    const struct pair *all[] = {&batch, &query, &job, &tx, &call, &lap, &many, &unit};
    for (int i = 0; i < 8; i++)
        show(all[i]);
    printf("hits twin__start %ld\nhits twin__done %ld\n", twins, twins);
    printf("hits query__start %ld\nhits query__done %ld\n", query.calls, query.timed);
    printf("asked %ld\n", asked);
    printf("raised %ld\n", both_raised);
    return 0;
}
