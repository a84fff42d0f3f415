/* Reads entries of flushed buffers with what comes before them: values and texts. */
#ifndef READS_H
#define READS_H
#include "support.h"

/* An entry that was read, and what came before it. */
struct read {
    const struct site *site;
    uint64_t sp, values[4], whole;
    int count, length;
    char text[1009];
};
static struct read *reads;
static int read_count, fillers, samples;

/* A handler may interrupt this and read a page of its own. */
static inline void add_read(struct read *next, uint64_t low, uint64_t tag) {
    int at = __atomic_fetch_add(&read_count, 1, __ATOMIC_RELAXED);
    CHECK(at < 2000000);
    next->site = (const struct site *)(uintptr_t)(tag & 0x7fffffffffe0u);
    next->sp = low >> 48;
    next->whole = tag >> 1 & 1;
    reads[at] = *next;
}

static inline void read_page(struct ctrace_c1_buffer *buffer) {
    struct read next;
    int i, is_new = 1;
    for (i = 0; i < 252; i++) {
        uint64_t low = buffer->slots[i][0], tag = buffer->slots[i][1];
        int kind = (int)(tag >> 2 & 7);
        if (!tag) continue;
        if (is_new) memset(&next, 0, sizeof next), next.length = -1, is_new = 0;
        CHECK(kind == 5 || kind == 6 ? low : low << 16);
        if (kind) CHECK((tag & 3) == 0);
        if (kind == 4) {
            CHECK(next.length == -1 && next.count < 4 && (tag & 0xffe0) == 0);
            next.values[next.count++] = low >> 48 | tag >> 16 << 16;
        } else if (kind == 1 || kind == 2 || kind == 5 || kind == 6) {
            next.length = add_piece(next.text, next.length, buffer->slots[i]);
            CHECK(next.length <= 1008);
        } else if (kind == 7) {
            int small = (int16_t)(tag >> 48);
            double as_float = small;
            CHECK(next.length == -1 && next.count == 0);
            next.count = 1;
            next.values[0] = (uint64_t)(int64_t)small;
            if (tag >> 47 & 1) memcpy(next.values, &as_float, 8);
            add_read(&next, low, tag);
            samples++;
            is_new = 1;
        } else if (kind == 3 || tag & 1) {
            CHECK(next.length == -1 && next.count == 0);
            fillers += kind == 3;
        } else {
            CHECK(kind == 0);
            add_read(&next, low, tag);
            is_new = 1;
        }
    }
}

/* Returns the entry of this number at sites of this name. */
static inline struct read *entry(const char *name, int number) {
    int i;
    for (i = 0; i < read_count; i++)
        if (strcmp(site_name(reads[i].site), name) == 0 && number-- == 0) return &reads[i];
    return NULL;
}

/* From now on, flushed entries go to `reads`. */
static inline void start_reading(void) {
    reads = (struct read *)mmap(NULL, 2000000 * sizeof(struct read), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(reads != MAP_FAILED);
    patch(ctrace_c1_flush, read_page);
}
#endif
