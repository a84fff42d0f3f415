/* Ends badly, in the middle of a call.
 * Usage: crash segv|abort|kill|term|exit [CODE] */
#include "count.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

COUNTER(work);
COUNTER(in_flight);

static volatile int *volatile nowhere = NULL;

FN unsigned long work(unsigned long x) {
    COUNT(work);
    return x + 1;
}

FN unsigned long in_flight(const char *how, int code) {
    COUNT(in_flight);
    unsigned long sum = 0;
    for (int i = 0; i < 100; i++)
        sum = work(sum);
    SHOW(work);
    SHOW(in_flight);
    fflush(stdout);
    if (strcmp(how, "segv") == 0)
        *nowhere = 1;
    else if (strcmp(how, "abort") == 0)
        abort();
    else if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    else if (strcmp(how, "term") == 0)
        kill(getpid(), SIGTERM);
    else if (strcmp(how, "exit") == 0)
        _exit(code);
    return sum;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    in_flight(argv[1], (int)number(argc, argv, 2, 3));
    return 2;
}
