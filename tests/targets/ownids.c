/* Asks for its own user id. It may switch stacks, so return probes are forbidden in its process.
 * Usage: ownids [TIMES=50] */
#include "count.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv) {
    stack_t now;
    unsigned long sum = 0;
    if (sigaltstack(NULL, &now))
        return 1;
    for (long i = number(argc, argv, 1, 50); i > 0; i--)
        sum += getuid() == geteuid();
    return sum == 0;
}
