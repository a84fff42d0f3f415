/* Nesting, tags, stack pointers, threads, fork, exit. C11 and C++17. With second.c. */
#include "support.h"
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#ifdef __cplusplus
extern "C"
#endif
int second(int depth);

static __attribute__((noinline)) int leaf(int x) {
    CTRACE_SCOPE("leaf");
    return x + 1;
}

static __attribute__((noinline)) int nested(int x) {
    CTRACE_FUNCTION;
    for (int i = 0; i < 2; i++) {
        CTRACE_SCOPE_IN(prod, "loop");
        x = leaf(x);
    }
    CTRACE_BEGIN(part, "part");
    x = leaf(x);
    CTRACE_END(part);
    x = leaf(x);
    CTRACE_END(part);
    {
        CTRACE_BEGIN_IN(prod, early, "early");
        if (x) return x; /* ended by the return */
        CTRACE_END(early);
    }
    return x;
}

static __attribute__((noinline)) int recursive(int n) {
    CTRACE_FUNCTION();
    volatile char *room = (volatile char *)__builtin_alloca((size_t)(n + 1) * 16); /* moves the stack pointer within the scope */
    room[0] = (char)n;
    room[1] = (char)n;
    return n == 0 ? room[0] : recursive(n - 1) + room[1];
}

static __attribute__((noinline)) int many(int x) {
    CTRACE_FUNCTION_IN(dev);
    return x;
}

static __attribute__((noinline)) void far_away(size_t bytes) {
    void *room = __builtin_alloca(bytes);
    __asm__ volatile("" : : "r"(room) : "memory"); /* it is used, all of it */
    many(1);
    __asm__ volatile("" : : "r"(room) : "memory");
}

static __attribute__((noinline)) void lasting(uint64_t ticks) {
    uint64_t start = __builtin_ia32_rdtsc();
    CTRACE_SCOPE("leaf");
    while (__builtin_ia32_rdtsc() - start < ticks) continue;
}

/* Checks the number of taken slots, and of those that become whole calls. */
static void check_slots(int slots, int whole) {
    CHECK((int)(ctrace_c1_mine->position - 64) / 16 == slots && ctrace_c1_mine->whole == whole);
    event_count = 0;
    ctrace_c1_empty(ctrace_c1_mine, 0);
    CHECK(event_count == slots + whole && check_nesting(0) * 2 == event_count);
}

static void stretched(void) {
    lasting(1 << 18);
    check_slots(2, 0);
    far_away(1 << 20);
    check_slots(2, 0);
    second(0); /* one scope in another: the inner one is whole, the outer one not; unless interrupted */
    CHECK(ctrace_c1_mine->whole <= 1);
    check_slots(4 - ctrace_c1_mine->whole, ctrace_c1_mine->whole);
}

static void *thread(void *count) {
    for (int i = 0; i < *(int *)count; i++) leaf(i);
    return NULL;
}

static void run_thread(int count) {
    pthread_t id;
    CHECK(pthread_create(&id, NULL, thread, &count) == 0);
    CHECK(pthread_join(id, NULL) == 0);
}

static __attribute__((destructor)) void last_word(void) {
    leaf(2);
    (void)!write(1, "end\n", 4);
}

/* Checks that the child has its own events only. */
static void child(void) {
    CHECK(ctrace_c1_list->magic == 0);
    event_count = batch_count = register_count = 0;
    leaf(1);
    CHECK(register_count == 1);
    run_thread(1);
    CHECK(register_count == 2);
    CHECK(batch_count == 1 && event_count == 2);
    leaf(2);
    collect_all();
    CHECK(event_count == 6);
    for (int i = 0; i < event_count; i++) CHECK(strcmp(site_name(events[i].site), "leaf") == 0);
    CHECK(ctrace_c1_mine->tid == (uint32_t)getpid());
    /* Likewise in a grandchild. */
    pid_t pid = fork();
    if (pid == 0) {
        event_count = register_count = 0;
        leaf(1);
        collect_all();
        CHECK(event_count == 2 && register_count == 1);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    _exit(0);
}

int main(void) {
    capture();
    nested(1), recursive(3), second(2);
    CHECK(ctrace_c1_list == NULL && ctrace_c1_mine == NULL); /* dormant: no buffer */

    CHECK(switch_to("leaf", 1) >= 1);
    errno = 77;
    leaf(1);
    CHECK(errno == 77);
    CHECK(buffers() == 1 && register_count == 1);
    CHECK(ctrace_c1_mine == ctrace_c1_list);
    CHECK(events_in(ctrace_c1_mine) == 2 && ctrace_c1_mine->batch == 0 && ctrace_c1_mine->events == 0);
    collect_all();
    CHECK(event_count == 2 && !events[0].exit && events[1].exit);
    CHECK(events[0].sp == events[1].sp && events[0].time <= events[1].time);
    CHECK(events[0].sp < ((uintptr_t)__builtin_frame_address(0) & 0x1ffffffff0));
    CHECK(events[0].sp + 4096 > ((uintptr_t)__builtin_frame_address(0) & 0x1ffffffff0));

    event_count = 0;
    ctrace_c1_empty(ctrace_c1_mine, 0);
    CHECK(event_count == 2 && last_position > 64);
    event_count = 0;
    switch_to(NULL, 1);
    nested(1);
    ctrace_c1_empty(ctrace_c1_mine, 0);
    CHECK(last_events == 2 && last_batch == 1);
    CHECK(check_nesting(0) == 9);
    const char *order[] = {"nested", "loop", "leaf", "loop", "leaf", "part", "leaf", "leaf", "early"};
    for (int i = 0, call = 0; i < event_count; i++)
        if (!events[i].exit) CHECK(strcmp(site_name(events[i].site), order[call++]) == 0);

    event_count = 0;
    recursive(200);
    second(50);
    collect_all();
    CHECK(check_nesting(0) == 201 + 51 * 2);
    ctrace_c1_empty(ctrace_c1_mine, 0);
    CHECK(ctrace_c1_mine->position == 64 && ctrace_c1_mine->flushing == 0);
    for (int i = 0; i < 252; i++) CHECK(!ctrace_c1_mine->slots[i][0] && !ctrace_c1_mine->slots[i][1]);

    /* A batch for each 252 calls, or more where some were too long for one slot. */
    batch_count = event_count = 0;
    for (int i = 0; i < 25200; i++) many(i);
    CHECK(batch_count >= 100 && batch_count < 150);
    CHECK(event_count + events_in(ctrace_c1_mine) == 50400 && last_position == 4096);
    ctrace_c1_empty(ctrace_c1_mine, 0);

    /* A whole call must be short, near the buffer's stack pointer, and the last event. */
    stretched();

    /* A thread's end flushes; the next thread takes the buffer. */
    register_count = batch_count = event_count = 0;
    for (int i = 0; i < 100; i++) run_thread(3);
    CHECK(register_count == 100 && batch_count == 100 && event_count == 600);
    CHECK(buffers() == 2);
    for (struct ctrace_c1_buffer *b = ctrace_c1_list; b; b = b->next)
        CHECK(b == ctrace_c1_mine ? b->tid == (uint32_t)getpid() : b->tid == 0 && b->batch == 100 && b->events == 600);

    /* Eight threads at once with different scopes. */
    pthread_t ids[8];
    int count = 20000;
    event_count = 0;
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&ids[i], NULL, thread, &count) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(ids[i], NULL) == 0);
    CHECK(event_count == 8 * 40000);
    CHECK(buffers() <= 9);

    leaf(1); /* in the buffer when the fork comes */
    pid_t pid = fork();
    if (pid == 0) child();
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    event_count = 0;
    ctrace_c1_empty(ctrace_c1_mine, 0);
    CHECK(event_count == 2);

    /* The slow clock. */
    ctrace_c1_mine->clock = 2;
    event_count = 0;
    for (int i = 0; i < 1000; i++) many(i);
    ctrace_c1_empty(ctrace_c1_mine, 0);
    CHECK(check_nesting(0) == 1000);
    ctrace_c1_mine->clock = 1;

    announce_flushes = 1; /* one comes after last_word */
    leaf(1);
    return 0;
}
