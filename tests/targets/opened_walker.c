/* Opens a library half a second after its first call began, and has it walk the stack.
 * Without an argument it waits for the end of its input. With `fork PROGRAM LIBRARY` a child runs that
 * program with that library, and its parent ends with it.
 * Usage: opened_walker [LIBRARY | fork PROGRAM LIBRARY] */
#include "count.h"
#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

FN long inner(const char *library) {
    usleep(500000);
    void *handle = dlopen(library, RTLD_NOW);
    long (*walk)(void) = handle ? (long (*)(void))dlsym(handle, "plug_walk") : 0;
    long frames = walk ? walk() : 0;
    KEEP(frames);
    return frames;
}

FN long outer(const char *library) {
    long frames = inner(library);
    KEEP(frames);
    return frames;
}

int main(int argc, char **argv) {
    char byte;
    if (argc == 4 && !strcmp(argv[1], "fork")) {
        if (fork() == 0) {
            execl(argv[2], argv[2], argv[3], (char *)0);
            _exit(3);
        }
        return wait(0) < 0;
    }
    puts(argc < 2 ? "ready" : "begun");
    fflush(stdout);
    if (argc > 1)
        printf("frames %ld\n", outer(argv[1]));
    while (argc < 2 && read(0, &byte, 1) > 0)
        ;
    return 0;
}
