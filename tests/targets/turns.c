/* Calls `work` 40 times for each byte of standard input, and prints `done` then. At the end of the input
 * it calls `work` twice more, and ends. `ready` is printed first. */
#include "count.h"
#include <unistd.h>

FN unsigned long work(unsigned long x) { return x * 3 + 1; }

static void calls(int times) {
    unsigned long sum = 1;
    for (int i = 0; i < times; i++)
        sum = work(sum);
    KEEP(sum);
}

static void say(char const *word) {
    puts(word);
    fflush(stdout);
}

int main(void) {
    char byte;
    say("ready");
    while (read(0, &byte, 1) > 0) {
        calls(40);
        say("done");
    }
    calls(2);
    return 0;
}
