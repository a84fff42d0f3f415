/* Takes BPF objects of the kernel as `prog:7`, `map:8` or `link:9`, and prints those that still
 * exist. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_there(int command, unsigned id) {
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    /* All three commands have the id as their first field. */
    attributes.prog_id = id;
    long fd = syscall(SYS_bpf, command, &attributes, sizeof attributes);
    if (fd >= 0)
        close((int)fd);
    return fd >= 0 || errno != ENOENT;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char *colon = strchr(argv[i], ':');
        if (!colon)
            return 2;
        int command = argv[i][0] == 'p'   ? BPF_PROG_GET_FD_BY_ID
                      : argv[i][0] == 'm' ? BPF_MAP_GET_FD_BY_ID
                                          : BPF_LINK_GET_FD_BY_ID;
        if (is_there(command, (unsigned)atoi(colon + 1)))
            puts(argv[i]);
    }
    return 0;
}
