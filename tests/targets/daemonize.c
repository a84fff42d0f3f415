/* A program that becomes a daemon: its first process ends at once, and the daemon works on.
 * Usage: daemonize CALLS CODE FILE [SECONDS=0]
 * The first process prints the daemon's id and exits with CODE. The daemon has a session of its own
 * and no terminal. It waits half a second, calls `work` CALLS times, writes FILE, and ends after
 * SECONDS. */
#include "count.h"
#include <fcntl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

FN unsigned long work(unsigned long x) { return x * 3 + 1; }

static void be_a_daemon(long calls, const char *file, long seconds) {
    unsigned long sum = 0;
    int nothing = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++)
        dup2(nothing, i);
    usleep(500000);
    for (long i = 0; i < calls; i++)
        sum = work(sum);
    KEEP(sum);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    sleep((unsigned)seconds);
}

int main(int argc, char **argv) {
    long calls = number(argc, argv, 1, 1), code = number(argc, argv, 2, 0);
    int ids[2];
    pid_t daemon = 0;
    if (argc < 4 || pipe(ids) != 0)
        return 99;
    if (fork() == 0) {
        setsid();
        if (fork() != 0)
            _exit(0);
        daemon = getpid();
        if (write(ids[1], &daemon, sizeof daemon) == sizeof daemon)
            be_a_daemon(calls, argv[3], number(argc, argv, 4, 0));
        _exit(0);
    }
    if (read(ids[0], &daemon, sizeof daemon) != sizeof daemon)
        return 98;
    printf("%d\n", (int)daemon);
    fflush(stdout);
    wait(NULL);
    return (int)code;
}
