/* Shared parts of the test programs: switches scopes on and reads their events. */
#ifndef SUPPORT_H
#define SUPPORT_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ctrace.h"

#define CHECK(condition)                                                                               \
    do {                                                                                               \
        if (!(condition)) {                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                            \
            abort();                                                                                   \
        }                                                                                              \
    } while (0)

struct site {
    uint8_t version, flags, shape, level;
    uint32_t line;
    int32_t name, file, group, semaphore, point, text;
};

#ifdef __cplusplus
extern "C" {
#endif
extern const struct site __start_ctrace_sites[] __attribute__((visibility("hidden")));
extern const struct site __stop_ctrace_sites[] __attribute__((visibility("hidden")));
#ifdef __cplusplus
}
#endif

static inline void *follow(const int32_t *field) {
    return *field ? (char *)(uintptr_t)field + *field : NULL;
}
static inline const char *site_name(const struct site *site) { return (const char *)follow(&site->name); }
static inline volatile uint16_t *semaphore_of(const struct site *site) {
    return (volatile uint16_t *)follow(&site->semaphore);
}

/* Switches all scopes of this name (NULL: all) on or off, like the kernel. Returns their number. */
static inline int switch_to(const char *name, int on) {
    int found = 0;
    for (const struct site *site = __start_ctrace_sites; site < __stop_ctrace_sites; site++)
        if (!name || (site_name(site) && strcmp(site_name(site), name) == 0)) {
            *semaphore_of(site) = (uint16_t)on;
            found++;
        }
    return found;
}

struct event {
    uint64_t time;
    const struct site *site;
    uint64_t sp; /* bits 4 to 36 */
    int exit;
    uint32_t tid;
};

#define MOST 4000000
static struct event *events;
static int event_count, batch_count, register_count;
static uint64_t last_batch, last_events;
static uint32_t last_position;
static int announce_flushes;

static inline void note(struct event event) {
    int n = __atomic_fetch_add(&event_count, 1, __ATOMIC_RELAXED);
    CHECK(n < MOST);
    events[n] = event;
}

/* Decodes the event or the whole call in a slot. A whole call's stack pointer is near `stack`. */
static inline void decode(const uint64_t *slot, uint32_t tid, uint64_t stack) {
    struct event event;
    int whole = slot[1] >> 1 & 1;
    event.time = slot[0] & 0xffffffffffffu;
    event.sp = slot[0] >> 48 << 4;
    if (whole) event.sp = (stack + (uint64_t)((int64_t)((event.sp - stack) << 44) >> 44)) & 0x1fffffffff;
    else event.sp |= slot[1] >> 47 << 20;
    event.site = (const struct site *)(uintptr_t)(slot[1] & 0x7fffffffffe0u);
    event.exit = slot[1] & 1;
    event.tid = tid;
    if (slot[1] >> 2 & 7) { /* no event, but a name or filler */
        CHECK((slot[1] >> 2 & 7) <= 3 && (slot[1] & 3) == 0);
        return;
    }
    CHECK(!whole || !event.exit);
    note(event);
    if (whole) {
        event.time += slot[1] >> 47;
        event.exit = 1;
        note(event);
    }
}

static inline void collect(struct ctrace_c1_buffer *buffer) {
    for (int i = 0; i < 252; i++)
        if (buffer->slots[i][1]) decode(buffer->slots[i], buffer->tid, buffer->stack);
}

/* Returns the number of events of this batch, as the header counts them. */
static inline int events_in(const struct ctrace_c1_buffer *buffer) {
    return (int)(buffer->position - 64) / 16 + buffer->whole;
}

static void on_flush(struct ctrace_c1_buffer *buffer) {
    CHECK(buffer->flushing);
    CHECK(buffer->tid == (uint32_t)syscall(SYS_gettid));
    last_batch = buffer->batch;
    last_events = buffer->events;
    last_position = buffer->position;
    collect(buffer);
    __atomic_fetch_add(&batch_count, 1, __ATOMIC_RELAXED);
    if (announce_flushes) (void)!write(1, "flush\n", 6);
}

static void on_register(struct ctrace_c1_buffer *buffer) {
    CHECK(buffer->magic == UINT64_C(0x0162656361727463));
    CHECK(((uintptr_t)buffer & 4095) == 0);
    CHECK(buffer->tid == (uint32_t)syscall(SYS_gettid));
    __atomic_fetch_add(&register_count, 1, __ATOMIC_RELAXED);
}

static inline void patch(void (*site)(struct ctrace_c1_buffer *), void (*handler)(struct ctrace_c1_buffer *)) {
    unsigned char *at = (unsigned char *)(uintptr_t)site;
    unsigned char code[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0}; /* mov $handler, %rax; jmp *%rax */
    uintptr_t address = (uintptr_t)handler;
    memcpy(code + 2, &address, 8);
    CHECK(((uintptr_t)at & 15) == 0);
    CHECK(memcmp(at, "\x90\x0f\x1f\x44\0\0\x66\x2e\x0f\x1f\x84\0\0\0\0\0\xc3", 17) == 0);
    CHECK(mprotect((void *)((uintptr_t)at & ~(uintptr_t)4095), 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    memcpy(at, code, sizeof code);
}

/* Patches the sites as a probe would: from now on, flushed events go to `events`. */
static inline void capture(void) {
    events = (struct event *)mmap(NULL, MOST * sizeof(struct event), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(events != MAP_FAILED);
    patch(ctrace_c1_flush, on_flush);
    patch(ctrace_c1_register, on_register);
}

/* Adds the contents of all buffers in the list to `events`. */
static inline void collect_all(void) {
    for (struct ctrace_c1_buffer *buffer = ctrace_c1_list; buffer; buffer = buffer->next) collect(buffer);
}

static inline int buffers(void) {
    int n = 0;
    for (struct ctrace_c1_buffer *buffer = ctrace_c1_list; buffer; buffer = buffer->next) n++;
    return n;
}

/* Checks that the entries and exits of `tid` (0: all) nest properly. Returns the number of calls. */
static inline int by_time(const void *a, const void *b) {
    uint64_t x = ((const struct event *)a)->time, y = ((const struct event *)b)->time;
    return x < y ? -1 : x > y;
}
static inline int check_nesting(uint32_t tid) {
    static struct event stack[1000];
    int depth = 0, calls = 0;
    qsort(events, (size_t)event_count, sizeof *events, by_time);
    for (int i = 0; i < event_count; i++) {
        if (tid && events[i].tid != tid) continue;
        CHECK(events[i].site >= __start_ctrace_sites && events[i].site < __stop_ctrace_sites);
        if (!events[i].exit) {
            CHECK(depth < 1000);
            CHECK(depth == 0 || events[i].sp <= stack[depth - 1].sp);
            stack[depth++] = events[i];
            calls++;
        } else {
            CHECK(depth > 0);
            depth--;
            CHECK(stack[depth].site == events[i].site && stack[depth].sp == events[i].sp);
        }
    }
    CHECK(depth == 0);
    return calls;
}

/* Appends the piece in a slot to a text of this length, -1 if it has none. Returns the new length. */
static inline int add_piece(char *text, int length, const uint64_t *slot) {
    int kind = (int)(slot[1] >> 2 & 7), bytes = (int)(slot[1] >> 5 & 7), is_first = kind == 1 || kind == 5, i;
    CHECK(is_first || kind == 2 || kind == 6);
    CHECK(is_first ? length == -1 : length > 0 && length % 15 == 0);
    if (is_first) length = 0;
    for (i = 0; kind > 4 && i < 8; i++) text[length++] = (char)(~slot[0] >> 8 * i);
    for (i = 0; i < bytes; i++) text[length++] = (char)(slot[1] >> (8 + 8 * i));
    return length;
}

#endif
