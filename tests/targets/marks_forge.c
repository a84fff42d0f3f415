/* Calls the sites of its marker runtime itself, as often as it can, with forged buffers.
 * Usage: marks_forge flush|register|both THREADS */
#include "marks.h"
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUFFERS 4096

static volatile long sink;
static struct ctrace_c1_buffer *buffers;
static int flushes, registers;

FN void work(void) {
    CTRACE_FUNCTION;
    sink = sink + 1;
}

static void *forge(void *argument) {
    long thread = (long)argument;
    for (uint64_t round = 0;; round++) {
        struct ctrace_c1_buffer *buffer = &buffers[(round * 7 + (uint64_t)thread * 61) % BUFFERS];
        buffer->batch = round;
        buffer->events = round * 5000000000000u;
        if (flushes)
            ctrace_c1_flush(buffer);
        if (registers)
            ctrace_c1_register(buffer);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    flushes = strcmp(argv[1], "register") != 0;
    registers = strcmp(argv[1], "flush") != 0;
    buffers = mmap(NULL, BUFFERS * sizeof *buffers, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffers == MAP_FAILED)
        return 3;
    for (long i = 0; i < BUFFERS; i++) {
        buffers[i].magic = CTRACE_MAGIC_;
        buffers[i].clock = CTRACE_TSC_;
        buffers[i].tid = (uint32_t)getpid();
        buffers[i].position = 4096;
        /* The times go backwards. */
        for (long slot = 0; slot < 252; slot++) {
            buffers[i].slots[slot][0] = 1000000000u - (uint64_t)i * 1000 - (uint64_t)slot;
            buffers[i].slots[slot][1] = 32 * (uint64_t)(i + 1);
        }
    }
    work();
    printf("ready\n");
    fflush(stdout);
    long threads = number(argc, argv, 2, 1);
    for (long i = 1; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, forge, (void *)i);
    }
    forge(NULL);
}
