/* Looks at the kernel's BPF links again and again, as tools that list them do, and holds those that
 * put probes into a process until its input ends.
 * Usage: holds_links PID */
#include <linux/bpf.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { UPROBE_MULTI = 12 };

/* A part of `struct bpf_link_info`, which older headers lack. */
struct info {
    uint32_t type, id, program, unused;
    uint64_t path, offsets, counters, cookies;
    uint32_t path_size, count, flags, pid;
    char more[64];
};

static int bpf(int command, union bpf_attr *attr) {
    return syscall(SYS_bpf, command, attr, sizeof *attr);
}

static int is_of(int link, uint32_t pid) {
    struct info info;
    union bpf_attr attr;
    memset(&info, 0, sizeof info);
    memset(&attr, 0, sizeof attr);
    attr.info.bpf_fd = link;
    attr.info.info_len = sizeof info;
    attr.info.info = (uintptr_t)&info;
    return bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) == 0 && info.type == UPROBE_MULTI && info.pid == pid;
}

int main(int argc, char **argv) {
    uint32_t pid = argc > 1 ? atoi(argv[1]) : 0, last = 0;
    struct pollfd input = {0, POLLIN, 0};
    while (poll(&input, 1, 1) == 0) {
        union bpf_attr attr;
        for (;;) {
            memset(&attr, 0, sizeof attr);
            attr.start_id = last;
            if (bpf(BPF_LINK_GET_NEXT_ID, &attr))
                break;
            last = attr.next_id;
            memset(&attr, 0, sizeof attr);
            attr.link_id = last;
            int link = bpf(BPF_LINK_GET_FD_BY_ID, &attr);
            if (link >= 0 && !is_of(link, pid))
                close(link);
        }
    }
    return 0;
}
