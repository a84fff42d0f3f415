/* Functions with arguments and results of every type. Each call prints a line
 * `call {"function":…,"values":{…}}` with what the program itself knows of it, in the form of an
 * exported call. Usage: call_values [ROUNDS=20] */
#include "count.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Lines come in the order in which the calls begin. */
static char lines[64][600];
static int begun;

/* Keeps the line of a call, which its end can complete. */
static int tell(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(lines[begun], sizeof lines[0], format, values);
    va_end(values);
    return begun++;
}

static void complete(int line, const char *format, ...) {
    size_t length = strlen(lines[line]);
    va_list values;
    va_start(values, format);
    vsnprintf(lines[line] + length, sizeof lines[0] - length, format, values);
    va_end(values);
}

static void show(void) {
    for (int line = 0; line < begun; line++) printf("call %s}}\n", lines[line]);
    begun = 0;
}

FN int64_t narrow(int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint32_t f) {
    return a + b + c + d + e + (int64_t)f;
}

FN uint64_t wide(int64_t a, uint64_t b, _Bool c, char d, const void *e) {
    return a + b + c + d + !e;
}

/* Floating-point numbers in registers do not count for the places of the others. */
FN int32_t mixed(double a, int32_t b, float c, const char *d, double e) {
    return (int32_t)(a + b + c + d[0] + e);
}

FN _Bool stacked(int a, int b, int c, int d, int e, int f, int8_t g, double h, uint64_t i, const char *j) {
    return a + b + c + d + e + f + g + (int)h + (int)i + !!j > 300;
}

FN char floats(double a, double b, double c, double d, double e, double f, double g, double h, double i, float j) {
    return 'a' + (int)(1000 + a + b + c + d + e + f + g + h + i + j) % 26;
}

FN const char *text(const char *a, int b) { return a ? a + b : a; }

FN int8_t deep(uint8_t depth) {
    int line = tell("{\"function\":\"deep\",\"values\":{\"arg0\":%d", depth);
    int8_t result = depth ? deep(depth - 1) : 0;
    KEEP(result);
    result = depth % 2 ? result + 3 : -result;
    complete(line, ",\"retval\":%d", result);
    return result;
}

FN void *found(uint16_t a) { return a % 3 ? (char *)0 + a : 0; }

/* Leaves by a jump, so that its result is that of `found`. */
FN void *jumps(uint16_t a) { return found(a + 1); }

static jmp_buf back;

/* Every third call has no result. */
FN int leaves(int a, int b) {
    KEEP(a);
    if (a % 3 == 0) longjmp(back, 1);
    KEEP(b);
    return a * b;
}

FN int outer(int a, int b) {
    int volatile result = -1;
    if (!setjmp(back)) result = leaves(a, b);
    return result;
}

/* Escapes a text as JSON has it. */
static const char *escaped(const char *from) {
    static char to[300];
    size_t length = 0;
    for (size_t at = 0; from[at]; at++) {
        unsigned char c = from[at];
        if (at == 64) break;
        if (c == '"' || c == '\\')
            length += sprintf(to + length, "\\%c", c);
        else if (c < ' ')
            length += sprintf(to + length, "\\u%04x", c);
        else if (c >= 0x80)
            length += sprintf(to + length, "\\\\x%02x", c);
        else
            to[length++] = c;
    }
    strcpy(to + length, strlen(from) >= 64 ? "\\u2026" : "");
    return to;
}

static void texts(int round) {
    static const char *const all[] = {
        "GET key", "", "a \"quoted\" \\ text", "\033[2J\033]0;title\007 would drive a terminal", "\xff is no UTF-8",
        "sixty-three bytes, which is the longest text that is not cut...",
        "a text of more than sixty-four bytes, of which the last ones are not shown at all", "=1+1;|,\t'",
    };
    char own[100];
    const char *a = all[round % 8];
    /* Not from a literal, whose page nobody may have touched yet. */
    strcpy(own, a);
    int b = own[0] ? round % 2 : 0;
    int line = tell("{\"function\":\"text\",\"values\":{\"arg0\":\"%s\",\"by\":%d", escaped(own), b);
    complete(line, ",\"retval\":\"%s\"", escaped(text(own, b)));
    line = tell("{\"function\":\"text\",\"values\":{\"arg0\":null,\"by\":7,\"retval\":null");
    text(0, 7);
}

int main(int argc, char **argv) {
    long rounds = number(argc, argv, 1, 20);
    static char key[] = "key";
    for (long i = 0; i < rounds; i++) {
        int64_t n = i % 2 ? -i * 1000003 : i * 70000000001;
        int line = tell("{\"function\":\"narrow\",\"values\":{\"arg0\":%d,\"arg1\":%u,\"arg2\":%d,\"arg3\":%u,\"arg4\":%d,\"arg5\":%u",
                        (int8_t)n, (uint8_t)n, (int16_t)n, (uint16_t)n, (int32_t)n, (uint32_t)n);
        complete(line, ",\"retval\":%ld", narrow(n, n, n, n, n, n));
        line = tell("{\"function\":\"wide\",\"values\":{\"arg0\":%ld,\"arg1\":%lu,\"arg2\":%s,\"arg3\":\"%c\",\"arg4\":\"0x%lx\"",
                    n, (uint64_t)n, i % 2 ? "true" : "false", (int)('a' + i % 26), (uint64_t)n);
        complete(line, ",\"retval\":%lu", wide(n, n, i % 2, 'a' + i % 26, (void *)n));
        line = tell("{\"function\":\"mixed\",\"values\":{\"number\":%d,\"key\":\"%s\"", (int32_t)n, key);
        complete(line, ",\"retval\":%d", mixed(0.5, n, 1.5f, key, 2.5));
        line = tell("{\"function\":\"stacked\",\"values\":{\"arg5\":%ld,\"sarg0\":%d,\"sarg1\":%lu,\"sarg2\":\"%s\"",
                    i, (int8_t)n, (uint64_t)n, key);
        complete(line, ",\"retval\":%s", stacked(1, 2, 3, 4, 5, i, n, 0.25, n, key) ? "true" : "false");
        line = tell("{\"function\":\"floats\",\"values\":{\"sarg0\":%.2f,\"sarg1\":%.2f", i * 0.25, i * -1.5f);
        complete(line, ",\"retval\":\"%c\"", floats(1, 2, 3, 4, 5, 6, 7, 8, i * 0.25, i * -1.5f));
        texts(i);
        deep(i % 5);
        line = tell("{\"function\":\"jumps\",\"values\":{\"arg0\":%ld", i);
        void *result = jumps(i);
        complete(line, ",\"retval\":\"0x%lx\"", (unsigned long)result);
        tell("{\"function\":\"found\",\"values\":{\"arg0\":%ld,\"retval\":\"0x%lx\"", i + 1, (unsigned long)result);
        line = tell("{\"function\":\"leaves\",\"values\":{\"arg0\":%ld,\"arg1\":%ld", i, i + 2);
        int product = outer(i, i + 2);
        if (i % 3) complete(line, ",\"retval\":%d", product);
        show();
    }
}
