/* Maps a file as often as the kernel allows, and waits. Each probe in that file then takes long.
 * Usage: mapped_often FILE PROCESSES */
#include "count.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static void map(const char *path) {
    int file = open(path, O_RDONLY);
    off_t size = lseek(file, 0, SEEK_END);
    while (mmap(0, (size_t)size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) != MAP_FAILED) continue;
}

int main(int argc, char **argv) {
    int done[2];
    char byte = 0;
    if (argc < 3 || pipe(done)) return 1;
    long processes = number(argc, argv, 2, 1);
    for (long n = 0; n < processes; n++) {
        if (fork()) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        map(argv[1]);
        if (write(done[1], &byte, 1) != 1) return 1;
        pause();
    }
    for (long n = 0; n < processes; n++)
        if (read(done[0], &byte, 1) != 1) return 1;
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
