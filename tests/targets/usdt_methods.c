/* Methods of a language, as Ruby announces them: a pair of USDT probes in functions of their own, whose
 * arguments are the addresses of a class and a method. One class is hostile, one has no address.
 * Prints how often each was called. Usage: usdt_methods [ROUNDS=100] */
#include "count.h"
#include <string.h>

/* A site as sys/sdt.h writes it. */
#define SITE(name, class, method)                                                                       \
    __asm__ volatile("990: nop\n"                                                                       \
                     ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                            \
                     ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"        \
                     "993: .8byte 990b, 0, 0\n.asciz \"ruby\"\n.asciz \"" name "\"\n"                   \
                     ".asciz \"8@%%rdi 8@%%rsi\"\n994: .balign 4\n.popsection" ::"D"(class),            \
                     "S"(method)                                                                        \
                     : "memory")

COUNTER(handle);
COUNTER(parse);
COUNTER(hostile);
COUNTER(nameless);

/* Texts that are in memory: a probe cannot wait for a page. */
static char texts[5][64];

FN void enter(const char *class, const char *method) { SITE("method__entry", class, method); }

/* Deeper than the start, so that only the order of events joins them. */
FN void leave(const char *class, const char *method) {
    volatile char room[256];
    room[0] = 1;
    SITE("method__return", class, method);
    KEEP(class);
}

FN void parse(int depth) {
    enter(texts[0], texts[1]);
    COUNT(parse);
    if (depth > 0) parse(depth - 1);
    leave(texts[0], texts[1]);
}

FN void hostile(void) {
    enter(texts[3], texts[4]);
    COUNT(hostile);
    leave(texts[3], texts[4]);
}

FN void nameless(void) {
    enter((const char *)8, texts[1]);
    COUNT(nameless);
    leave((const char *)8, texts[1]);
}

FN void handle(void) {
    enter(texts[0], texts[2]);
    COUNT(handle);
    parse(1);
    hostile();
    nameless();
    leave(texts[0], texts[2]);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    strcpy(texts[0], "Server");
    strcpy(texts[1], "parse");
    strcpy(texts[2], "handle");
    strcpy(texts[3], "\x1b[31m<b>\"");
    strcpy(texts[4], "x\n=1+1");
    for (int i = 0; i < rounds; i++) handle();
    SHOW(handle);
    SHOW(parse);
    SHOW(hostile);
    SHOW(nameless);
    return 0;
}
