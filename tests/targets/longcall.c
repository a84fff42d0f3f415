/* One call that stays open, with short ones inside, until SIGTERM. Usage: longcall */
#include "count.h"
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t stop;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

FN unsigned long leaf(unsigned long x) { return x * 2654435761u + 1; }

FN unsigned long event_loop(void) {
    unsigned long x = 1;
    while (!stop) {
        x = leaf(x);
        usleep(500);
    }
    return x;
}

int main(void) {
    signal(SIGTERM, on_signal);
    return event_loop() == 0;
}
