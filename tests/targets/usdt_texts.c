/* A pair of USDT probes, and a point, whose notes have the addresses of texts. Prints the name of each
 * call's text. Usage: usdt_texts [ROUNDS=1000] */
#include "count.h"
#include <stdio.h>
#include <stdlib.h>

/* A site as sys/sdt.h writes it. */
#define SITE(name, arguments, ...)                                                                      \
    __asm__ volatile("990: nop\n"                                                                       \
                     ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                            \
                     ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"        \
                     "993: .8byte 990b, 0, 0\n.asciz \"texts\"\n.asciz \"" name "\"\n"                  \
                     ".asciz \"" arguments "\"\n994: .balign 4\n.popsection" ::__VA_ARGS__ : "memory")

static volatile unsigned long sink;

FN void query(const char *text, long number) {
    SITE("query__start", "8@%%rdi -8@%%rsi", "D"(text), "S"(number));
    sink += number;
    SITE("query__done", "4@$0");
}

FN void say(const char *text, long number) {
    SITE("say", "-4@%%esi 8@%%rdi", "D"(text), "S"(number));
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    char text[64];
    for (long i = 0; i < rounds; i++) {
        snprintf(text, sizeof text, "select %ld", i * 7);
        query(text, i);
        say(text, -i);
    }
    return 0;
}
