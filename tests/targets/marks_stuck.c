/* Has a marker buffer on a page that nobody fills in (userfaultfd), so that its readers wait. The
 * program registers the buffer repeatedly.
 * Usage: marks_stuck [MILLISECONDS after which the page is filled in; otherwise never] [CALLS in
 * each 20 ms = 300] */
#include "marks.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile long sink;

FN void work(void) {
    CTRACE_FUNCTION;
    sink = sink + 1;
}

struct filler {
    int uffd;
    long pause;
};

/* Answers waiting readers after a pause. */
static void *fill_in(void *argument) {
    struct filler *filler = argument;
    struct uffd_msg fault;
    while (read(filler->uffd, &fault, sizeof fault) == sizeof fault) {
        marks_doze(filler->pause);
        struct uffdio_zeropage page = {
            .range = {.start = fault.arg.pagefault.address & -4096ull, .len = 4096}, .mode = 0};
        ioctl(filler->uffd, UFFDIO_ZEROPAGE, &page);
    }
    return NULL;
}

static void *bottomless(long pause) {
    int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API, .features = 0, .ioctls = 0};
    if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) != 0)
        return NULL;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {
        .range = {.start = (uint64_t)page, .len = 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
    if (page == MAP_FAILED || ioctl(uffd, UFFDIO_REGISTER, &range) != 0)
        return NULL;
    static struct filler filler;
    static pthread_t thread;
    filler = (struct filler){.uffd = uffd, .pause = pause};
    return pause == 0 || pthread_create(&thread, NULL, fill_in, &filler) == 0 ? page : NULL;
}

int main(int argc, char **argv) {
    long pause = number(argc, argv, 1, 0), calls = number(argc, argv, 2, 300);
    struct ctrace_c1_buffer *buffer = bottomless(pause);
    if (!buffer) {
        printf("none\n");
        return 0;
    }
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        ctrace_c1_register(buffer);
        for (long i = 0; i < calls; i++)
            work();
        marks_doze(20);
    }
}
