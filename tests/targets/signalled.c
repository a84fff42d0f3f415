/* Waits for a line, and then gets a signal within a call, whose handler runs on a stack of its own. */
#include "count.h"
#include <signal.h>
#include <string.h>

static volatile long handled;

static void handler(int number) { handled = number; }

FN long outer(long value) {
    raise(SIGUSR1);
    return value + handled;
}

int main(void) {
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action;
    char line[8];
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK;
    if (sigaltstack(&alternate, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 2;
    printf("outer %ld\n", outer(100));
    return 0;
}
