/* fork and vfork: only the parent's calls count without --follow.
 * The counts printed are the parent's. Usage: forker [CHILDREN=5] */
#include "count.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

COUNTER(work);
COUNTER(in_child);

FN unsigned long work(unsigned long x) {
    COUNT(work);
    return x * 3 + 1;
}

FN unsigned long in_child(unsigned long x) {
    COUNT(in_child);
    return work(x) + 1;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "child") == 0)
        return in_child(1) == 5 ? 7 : 1;
    long children = number(argc, argv, 1, 5);
    unsigned long sum = 0;
    int status, codes = 0;
    for (long i = 0; i < children; i++) {
        sum += work(i);
        pid_t pid = fork();
        if (pid == 0) {
            unsigned long inner = 0;
            for (int k = 0; k < 100; k++)
                inner += in_child(k);
            _exit(inner == 0 ? 1 : 3);
        }
        waitpid(pid, &status, 0);
        codes += WEXITSTATUS(status);
    }
    for (int i = 0; i < 2; i++) {
        pid_t pid = vfork();
        if (pid == 0) {
            execl("/proc/self/exe", argv[0], "child", (char *)NULL);
            _exit(127);
        }
        waitpid(pid, &status, 0);
        codes += WEXITSTATUS(status);
    }
    for (int i = 0; i < 50; i++)
        sum += work(i);
    printf("sum %lu\ncodes %d\nchildren %ld\n", sum, codes, children + 2);
    SHOW(work);
    SHOW(in_child);
    return 0;
}
