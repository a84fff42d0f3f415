/* A tracer that leaves breakpoints behind: the kernel does that if a thread is killed while it
 * removes probes. It uses one multi link with a program that does nothing.
 * Usage: leave PID FILE PLACES HOW MICROSECONDS
 * PID: 0 for all processes. PLACES: a file of lines `OFFSET [SEMAPHORE]`, in hexadecimal.
 * It prints `armed`, and keeps its link until its input ends.
 * HOW: `exit` or `kill` ends it MICROSECONDS after it began to close its link; `hold` closes it in
 * order. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { UPROBE_MULTI = 48, MOST = 1 << 20 };

static uint64_t offsets[MOST], semaphores[MOST], cookies[MOST];
static int link_fd;

static int bpf(int command, void *attributes, unsigned size) {
    int result = (int)syscall(SYS_bpf, command, attributes, size);
    if (result < 0) {
        perror(command == BPF_PROG_LOAD ? "load" : "link");
        exit(3);
    }
    return result;
}

static int load(void) {
    struct bpf_insn nothing[] = {{.code = 0xb7}, {.code = 0x95}};
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.prog_type = BPF_PROG_TYPE_KPROBE;
    attributes.insn_cnt = 2;
    attributes.insns = (uintptr_t)nothing;
    attributes.license = (uintptr_t) "GPL";
    attributes.expected_attach_type = UPROBE_MULTI;
    return bpf(BPF_PROG_LOAD, &attributes, sizeof attributes);
}

static int attach(unsigned pid, const char *file, unsigned count, int counts) {
    /* Some headers are too old to have these fields: use their offsets. */
    uint64_t attributes[18] = {0};
    uint32_t *words = (uint32_t *)attributes;
    words[0] = (uint32_t)load();
    words[2] = UPROBE_MULTI;
    attributes[2] = (uintptr_t)file;
    attributes[3] = (uintptr_t)offsets;
    attributes[4] = counts ? (uintptr_t)semaphores : 0;
    attributes[5] = (uintptr_t)cookies;
    words[12] = count;
    words[14] = pid;
    return bpf(BPF_LINK_CREATE, attributes, sizeof attributes);
}

static void *let_go(void *unused) {
    (void)unused;
    close(link_fd);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    FILE *places = fopen(argv[3], "r");
    if (!places)
        return 2;
    unsigned count = 0;
    int counts = 0;
    char line[128];
    while (count < MOST && fgets(line, sizeof line, places)) {
        int fields = sscanf(line, "%lx %lx", &offsets[count], &semaphores[count]);
        counts |= fields == 2;
        count += fields >= 1;
    }
    link_fd = attach((unsigned)atoi(argv[1]), argv[2], count, counts);
    printf("armed\n");
    fflush(stdout);
    char end;
    while (read(0, &end, 1) > 0)
        ;
    if (!strcmp(argv[4], "hold")) {
        close(link_fd);
        return 0;
    }
    pthread_t closer;
    pthread_create(&closer, NULL, let_go, NULL);
    long after = atol(argv[5]);
    struct timespec pause = {after / 1000000, after % 1000000 * 1000};
    nanosleep(&pause, NULL);
    if (!strcmp(argv[4], "kill"))
        raise(SIGKILL);
    _exit(0);
}
