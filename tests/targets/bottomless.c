/* Children that hang on a page of a file. This program is the file system (FUSE), and answers
 * everything but reads. It prints `ready` when all children have the page, or `none` without FUSE.
 * All ends with this process. It must be linked statically; its user explains why.
 * Usage: bottomless FOLDER code|memory CHILDREN
 * code: the page is code. memory: one thread of each child reads the page, so the kernel locks the
 * child's memory. Another thread wants to map more. Readers of the memory wait behind both. */
#define _GNU_SOURCE
#include "count.h"
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOT = 1, FILE_ID = 2, PAGE = 4096, LONG = 1000000, NOT_KNOWN = -38 };

FN void quick(void) { usleep(1000); }

static struct fuse_attr attributes(unsigned long node) {
    struct fuse_attr attr = {.ino = node, .nlink = 1, .size = PAGE, .blksize = PAGE};
    attr.mode = node == ROOT ? S_IFDIR | 0755 : S_IFREG | 0755;
    return attr;
}

static void answer(int fuse, unsigned long unique, int error, const void *body, size_t length) {
    static _Alignas(8) char out[PAGE];
    struct fuse_out_header header = {.len = sizeof header + length, .error = error, .unique = unique};
    memcpy(out, &header, sizeof header);
    if (length)
        memcpy(out + sizeof header, body, length);
    if (write(fuse, out, header.len) < 0)
        perror("fuse");
}

static void serve(int fuse) {
    static _Alignas(8) char in[FUSE_MIN_READ_BUFFER + PAGE];
    struct fuse_in_header *header = (struct fuse_in_header *)in;
    struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
                                 .max_write = PAGE, .max_background = 64, .congestion_threshold = 48};
    struct fuse_entry_out entry = {.nodeid = FILE_ID, .entry_valid = LONG, .attr_valid = LONG,
                                   .attr = attributes(FILE_ID)};
    struct fuse_attr_out attr = {.attr_valid = LONG};
    struct fuse_open_out open = {.fh = 1, .open_flags = FOPEN_KEEP_CACHE};
    if (read(fuse, in, sizeof in) <= 0)
        return;
    attr.attr = attributes(header->nodeid);
    switch (header->opcode) {
    case FUSE_INIT: answer(fuse, header->unique, 0, &init, sizeof init); break;
    case FUSE_LOOKUP: answer(fuse, header->unique, 0, &entry, sizeof entry); break;
    case FUSE_GETATTR: answer(fuse, header->unique, 0, &attr, sizeof attr); break;
    case FUSE_OPEN: answer(fuse, header->unique, 0, &open, sizeof open); break;
    case FUSE_READ: case FUSE_FORGET: case FUSE_BATCH_FORGET: case FUSE_INTERRUPT: break;
    default: answer(fuse, header->unique, NOT_KNOWN, NULL, 0);
    }
}

static void *read_page(void *page) {
    static char byte;
    int memory = open("/proc/self/mem", O_RDONLY);
    if (pread(memory, &byte, 1, (off_t)(unsigned long)page) < 0)
        perror("mem");
    return NULL;
}

static void child(const char *path, int lock_memory, int told) {
    pthread_t reader;
    int file = open(path, O_RDONLY);
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    if (page == MAP_FAILED)
        _exit(1);
    if (lock_memory) {
        pthread_create(&reader, NULL, read_page, page);
        usleep(200000);
    }
    if (write(told, "1", 1) != 1)
        _exit(1);
    if (lock_memory)
        mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (;;)
        quick();
}

int main(int argc, char **argv) {
    char options[80], path[4096];
    int told[2], fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (argc < 4 || pipe(told))
        return 2;
    int lock_memory = strcmp(argv[2], "memory") == 0;
    long children = number(argc, argv, 3, 1), i;
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    snprintf(path, sizeof path, "%s/file", argv[1]);
    /* The mount is private. */
    if (fuse < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("bottomless", argv[1], "fuse", MS_NOSUID | MS_NODEV, options)) {
        puts("none");
        return 0;
    }
    for (i = 0; i < children; i++) {
        if (fork())
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fuse);
        child(path, lock_memory, told[1]);
    }
    for (i = 0;;) {
        char byte;
        struct pollfd fds[2] = {{.fd = fuse, .events = POLLIN}, {.fd = told[0], .events = POLLIN}};
        poll(fds, 2, -1);
        if (fds[0].revents)
            serve(fuse);
        if (fds[1].revents && read(told[0], &byte, 1) == 1 && ++i == children) {
            puts("ready");
            fflush(stdout);
        }
    }
}
