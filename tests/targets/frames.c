/* Makes 100 frames. Every tenth of them loads for 20 ms in place of 1. */
#include "count.h"
#include <time.h>

static void doze(long milliseconds) {
    struct timespec t = {0, milliseconds * 1000000};
    nanosleep(&t, NULL);
}

FN void draw(void) { doze(1); }

FN void load(int is_slow) { doze(is_slow ? 20 : 1); }

FN void frame(int number) {
    load(number % 10 == 9);
    draw();
    draw();
}

int main(void) {
    for (int number = 0; number < 100; number++)
        frame(number);
    return 0;
}
