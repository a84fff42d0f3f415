/* USDT probes with arguments of all sorts. The notes are written by hand, so that each argument is
 * where its note says, whatever the compiler does. Prints `usdt PROVIDER:NAME HITS`, and for each
 * readable argument `value PROVIDER:NAME:ARG READ SUM`: the number of reads and the sum of the
 * values, of floating-point numbers in quarters.
 * Usage: usdt_values [ROUNDS=1000] */
#include "count.h"
#include <stdint.h>
#include <string.h>

/* A site as sys/sdt.h writes it. The operands pin the registers that `arguments` names. */
#define SITE(name, arguments, ...)                                                                      \
    __asm__ volatile("990: nop\n"                                                                       \
                     ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                            \
                     ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"        \
                     "993: .8byte 990b, 0, 0\n.asciz \"values\"\n.asciz \"" name "\"\n"                 \
                     ".asciz \"" arguments "\"\n994: .balign 4\n.popsection" ::__VA_ARGS__ : "memory")

/* The true values of a probe: hits, and reads and sums by argument. */
struct probe {
    const char *name;
    long hits;
    long read[12];
    uint64_t sum[12];
};

static void saw(struct probe *probe, int argument, uint64_t value) {
    probe->read[argument]++;
    probe->sum[argument] += value;
}

static struct probe registers = {.name = "registers"}, signs = {.name = "signs"}, memory = {.name = "memory"},
                    bad = {.name = "bad"}, places = {.name = "places"}, floating = {.name = "floating"},
                    sizes = {.name = "sizes"};

/* Parts of a register, and constants. */
FN void hit_registers(uint64_t i) {
    uint64_t a = 0x1122334455667788 + i * 0x10101, b = i << 33 | 5;
    registers.hits++;
    saw(&registers, 0, a);
    saw(&registers, 1, (uint32_t)a);
    saw(&registers, 2, (uint16_t)a);
    saw(&registers, 3, (uint8_t)a);
    saw(&registers, 4, (uint8_t)(a >> 8));
    saw(&registers, 5, b);
    saw(&registers, 6, 5);
    saw(&registers, 7, 12);
    SITE("registers", "8@%%rax 4@%%eax 2@%%ax 1@%%al 1@%%ah 8@%%rsi 4@%%esi 1@$12", "a"(a), "S"(b));
}

/* Negative numbers, and positive ones that look negative in another size. */
FN void hit_signs(int64_t i) {
    int64_t b = -1 - i;
    signs.hits++;
    saw(&signs, 0, b);
    saw(&signs, 1, (int32_t)b);
    saw(&signs, 2, (int16_t)b);
    saw(&signs, 3, (int8_t)b);
    saw(&signs, 4, (int8_t)(b >> 8));
    saw(&signs, 5, (uint32_t)b);
    saw(&signs, 6, -5);
    saw(&signs, 7, 0xfffffffb);
    SITE("signs", "-8@%%rbx -4@%%ebx -2@%%bx -1@%%bl -1@%%bh 4@%%ebx -4@$-5 4@$-5", "b"(b));
}

static int64_t numbers[4] = {3, -40, 500, 6000000000};
static int32_t hidden __attribute__((used));

/* Memory by base, index and displacement, and variables by name. */
FN void hit_memory(uint64_t i) {
    uint64_t index = i % 3;
    hidden = -(int32_t)i;
    memory.hits++;
    saw(&memory, 0, numbers[index]);
    saw(&memory, 1, (int32_t)numbers[index + 1]);
    saw(&memory, 2, (uint16_t)numbers[1]);
    saw(&memory, 3, numbers[3]);
    saw(&memory, 4, hidden);
    SITE("memory",
         "-8@(%%rdi,%%rcx,8) -4@8(%%rdi, %%rcx, 8) 2@8(%%rdi) 8@numbers+24(%%rip) -4@hidden(%%rip)",
         "D"(numbers), "c"(index));
}

/* A pointer that is invalid every other time, before an argument that is always readable. */
FN void hit_bad(uint64_t i) {
    int64_t *pointer = i % 2 ? (int64_t *)16 : &numbers[i % 4];
    bad.hits++;
    if (i % 2 == 0)
        saw(&bad, 0, *pointer);
    saw(&bad, 1, i);
    SITE("bad", "-8@(%%rdx) 8@%%rcx", "d"(pointer), "c"(i));
}

/* Two places of one name. One of them has no second argument. */
FN void hit_places(uint64_t i) {
    places.hits++;
    saw(&places, 0, i);
    if (i % 3) {
        saw(&places, 1, -i);
        SITE("places", "4@%%eax -8@%%rdx", "a"(i), "d"(-i));
    } else {
        SITE("places", "8@%%rcx", "c"(i));
    }
}

static struct {
    double wide;
    float narrow[2];
} floats;

/* ctrace does not read the first argument. */
FN void hit_floating(uint64_t i) {
    double half = i / 2.0;
    uint64_t bits;
    memcpy(&bits, &half, sizeof bits);
    floats.wide = 100.25 - i;
    floats.narrow[1] = i / -4.0f;
    floating.hits++;
    saw(&floating, 1, i);
    saw(&floating, 2, (int64_t)(half * 4));
    saw(&floating, 3, (int64_t)(floats.wide * 4));
    saw(&floating, 4, (int64_t)(floats.narrow[1] * 4));
    SITE("floating", "8f@%[half] 8@%%rdi -8f@%%rax 8f@(%%rsi) -4f@12(%%rsi)", [half] "x"(half), "D"(i), "a"(bits),
         "S"(&floats));
}

/* A floating-point number of 4 bytes at one place, and of 8 at the other. */
FN void hit_sizes(uint64_t i) {
    floats.wide = i + 0.5;
    floats.narrow[0] = i + 0.25f;
    sizes.hits++;
    if (i % 3) {
        saw(&sizes, 0, 4 * i + 2);
        SITE("sizes", "8f@floats(%%rip)", "m"(floats));
    } else {
        saw(&sizes, 0, 4 * i + 1);
        SITE("sizes", "4f@floats+8(%%rip)", "m"(floats));
    }
}

static void show(const struct probe *probe) {
    printf("usdt values:%s %ld\n", probe->name, probe->hits);
    for (int i = 0; i < 12; i++)
        if (probe->read[i])
            printf("value values:%s:arg%d %ld %ld\n", probe->name, i, probe->read[i], (long)probe->sum[i]);
}

int main(int argc, char **argv) {
    long rounds = number(argc, argv, 1, 1000);
    for (long i = 0; i < rounds; i++) {
        hit_registers(i);
        hit_signs(i);
        hit_memory(i);
        hit_bad(i);
        hit_places(i);
        hit_floating(i);
        hit_sizes(i);
    }
    const struct probe *all[] = {&registers, &signs, &memory, &bad, &places, &floating, &sizes};
    for (int i = 0; i < 7; i++)
        show(all[i]);
    return 0;
}
