/* Keeps a thread of another process from ending. If killed, the thread waits in the kernel with all
 * files of the process open, as if a file system did not answer. It is released when the input of
 * this program ends.
 * Usage: stuck TID */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 2 || ptrace(PTRACE_SEIZE, atoi(argv[1]), NULL, PTRACE_O_TRACEEXIT) != 0) {
        perror("stuck");
        return 1;
    }
    puts("ready");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    return 0;
}
