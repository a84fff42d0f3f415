/* Serves requests. The work depends on the key: a dear one takes 20 steps, a cheap one takes one, and
 * each of the others, which come once, two.
 * Usage: requests [OTHERS=30 [STEPS OF A DEAR ONE=20]] */
#include "count.h"

COUNTER(serve);
COUNTER(step);

FN static long step(long x) {
    COUNT(step);
    for (int i = 0; i < 200; i++) KEEP(x);
    return x + 1;
}

FN static long serve(const char *key, int steps) {
    COUNT(serve);
    long x = key[0];
    while (steps-- > 0) x = step(x);
    return x % 2;
}

int main(int argc, char **argv) {
    long others = number(argc, argv, 1, 30);
    /* On the stack: a text in a page that nobody has touched yet could not be read. */
    char cheap[] = "cheap", dear[] = "dear";
    for (int i = 0; i < 40; i++) serve(cheap, 1);
    for (int i = 0; i < 25; i++) serve(dear, (int)number(argc, argv, 2, 20));
    for (long i = 0; i < others; i++) {
        char key[16];
        snprintf(key, sizeof key, "once-%ld", i);
        serve(key, 2);
    }
    SHOW(serve);
    SHOW(step);
}
