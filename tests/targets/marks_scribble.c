/* Overwrites its marker memory with nonsense, in ways that do not crash itself.
 * Usage: marks_scribble slots|header|magic|sites|list|all ROUNDS [wait] */
#include "marks.h"
#include <sys/mman.h>
#include <unistd.h>

static volatile long sink;

FN void work(void) {
    CTRACE_FUNCTION;
    sink = sink + 1;
}

static uint64_t next_random(void) {
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

static void slots(struct ctrace_c1_buffer *buffer) {
    for (int i = 0; i < 60; i++)
        buffer->slots[next_random() % 252][next_random() % 2] = next_random();
}

/* Overwrites all fields that the runtime itself does not use. */
static void header(struct ctrace_c1_buffer *buffer) {
    buffer->events = next_random() >> next_random() % 64;
    buffer->batch = next_random() >> next_random() % 64;
    buffer->stack = next_random();
    buffer->tid = (uint32_t)next_random();
    buffer->clock = (uint8_t)(next_random() % 4);
    buffer->whole = (uint16_t)next_random();
    memset(buffer->reserved, (int)next_random(), sizeof buffer->reserved);
}

static void magic(struct ctrace_c1_buffer *buffer) { buffer->magic = next_random(); }

static void sites(void) {
    uintptr_t from = (uintptr_t)marks_first & -4096ul, to = (uintptr_t)marks_end + 4095 & -4096ul;
    mprotect((void *)from, to - from, PROT_READ | PROT_WRITE);
    struct marks_site *site;
    for (site = (struct marks_site *)marks_first; site < marks_end; site++)
        for (int i = 0; i < 4; i++)
            ((uint64_t *)site)[i] = next_random();
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    const char *what = argv[1];
    int all = strcmp(what, "all") == 0;
    long rounds = number(argc, argv, 2, 100);
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < 200; i++)
            work();
        struct ctrace_c1_buffer *buffer = ctrace_c1_mine;
        if (buffer) {
            if (all || strcmp(what, "slots") == 0)
                slots(buffer);
            if (all || strcmp(what, "header") == 0)
                header(buffer);
            if (round % 8 == 7 && (all || strcmp(what, "magic") == 0))
                magic(buffer);
        }
        if (round == rounds / 2 && (all || strcmp(what, "sites") == 0))
            sites();
        marks_doze(1);
    }
    if (strcmp(what, "list") == 0) {
        /* A list without end: the buffer is its own successor. */
        static struct ctrace_c1_buffer fake __attribute__((aligned(4096)));
        fake.magic = CTRACE_MAGIC_;
        fake.clock = CTRACE_TSC_;
        fake.tid = (uint32_t)getpid();
        fake.position = CTRACE_FIRST_;
        fake.next = &fake;
        ctrace_c1_list = &fake;
    }
    if (argc > 3) {
        printf("ready\n");
        fflush(stdout);
        for (;;)
            pause();
    }
    printf("survived\n");
    return 0;
}
