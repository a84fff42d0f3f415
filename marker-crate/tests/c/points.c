/* Messages, plots, frames and scopes with values, in a program and in signal handlers that interrupt it.
 * Each entry comes with its values and its whole text. C11 and C++17. */
#include "reads.h"
#include <errno.h>
#include <float.h>
#include <signal.h>
#include <sys/time.h>

static uint64_t value(const char *name, int number) {
    struct read *found = entry(name, number);
    CHECK(found && found->count == 1 && found->length == -1);
    return found->values[0];
}
static double float_value(const char *name, int number) {
    uint64_t bits = value(name, number);
    double number_is;
    memcpy(&number_is, &bits, sizeof bits);
    return number_is;
}
static const char *text(const char *name, int number) {
    struct read *found = entry(name, number);
    CHECK(found && found->count == 0 && found->length == (int)strlen(found->text));
    return found->text;
}
static void finish(void) {
    ctrace_c1_empty(ctrace_c1_mine, 0);
}

/* Checks what the program's file has of a site. The head is version, flags, shape and level. */
static void check_site(const char *name, const char *list, const char *group, unsigned flags, unsigned shape,
                       unsigned level) {
    const struct site *site;
    for (site = __start_ctrace_sites; site < __stop_ctrace_sites; site++)
        if (strcmp(site_name(site), name) == 0) {
            const char *group_is = (const char *)follow(&site->group);
            CHECK(site->version == 1 && site->flags == flags);
            CHECK(site->shape == shape && site->level == level);
            if (list) CHECK(strcmp(name + strlen(name), "") == 0 && strcmp(site_name(site) + strlen(name) + 1, list) == 0);
            CHECK(group ? group_is && strcmp(group_is, group) == 0 : !group_is);
            return;
        }
    CHECK(!name);
}

/* Checks the colour behind the group of a site. */
static void check_colour(const char *name, unsigned colour) {
    const struct site *site;
    for (site = __start_ctrace_sites; site < __stop_ctrace_sites; site++)
        if (strcmp(site_name(site), name) == 0) {
            const char *group = (const char *)follow(&site->group);
            uint32_t colour_is;
            CHECK(group);
            memcpy(&colour_is, group + strlen(group) + 1, sizeof colour_is);
            CHECK(colour_is == colour);
            return;
        }
    CHECK(!name);
}

static int computed;
static int compute(int n) {
    computed++;
    return n;
}

static __attribute__((noinline)) void every_kind(int n, double x) {
    unsigned char byte = 200;
    unsigned long big = ~0ul;
    float third = 0.5f;
    CTRACE_SCOPE("around");
    CTRACE_SCOPE_VALUE("read", "bytes", (unsigned)n + 1u);
    CTRACE_SCOPE_VALUE_IN(net, "weigh", "kg", x);
    CTRACE_MESSAGE("just a text: 100 percent, ü");
    CTRACE_MESSAGE("%s is %d (%.1f)", "n", compute(n), x);
    CTRACE_MESSAGE_LEVEL(CTRACE_WARN, "100 %%");
    CTRACE_MESSAGE_IN(net, CTRACE_ERROR, "lost %5s", "it");
    CTRACE_PLOT("queue", compute(-n));
    CTRACE_PLOT("byte", byte);
    CTRACE_PLOT("big", big);
    CTRACE_PLOT("third", third);
    CTRACE_PLOT_UNIT("load", "%", x);
    CTRACE_PLOT_UNIT("long", "ms", 3LL);
    CTRACE_PLOT_IN(net, "in net", 7u);
    CTRACE_FRAME("frames");
    CTRACE_FRAME_IN(net, "frames in net");
    CTRACE_FRAME_SCOPE("frame scope");
    CTRACE_FRAME_SCOPE_IN(net, "frame scope in net");
    CTRACE_FRAME_BEGIN(a, "frame in parts");
    CTRACE_FRAME_BEGIN_IN(net, b, "frame in parts in net");
    CTRACE_END(b);
    CTRACE_END(a);
}

enum { SEA = 0x00aaff };
static __attribute__((noinline)) void in_colours(void) {
    CTRACE_SCOPE_COLOUR("in blue", 0x33aaff);
    CTRACE_SCOPE_COLOR_IN(net, "in red", 0xff0000u);
    CTRACE_BEGIN_COLOUR(begun, "begun", SEA);
    CTRACE_BEGIN_COLOUR_IN(net, begun_in, "begun in net", SEA + 1);
    CTRACE_FUNCTION_COLOUR_IN(dev, 0);
    CTRACE_SCOPE_VALUE_COLOUR("blue with a value", "n", compute(3), SEA);
    CTRACE_SCOPE_VALUE_COLOR_IN(net, "red with a value", "x", 0.5, 0xff0000);
    CTRACE_MESSAGE_COLOUR(0, SEA, "a blue text");
    CTRACE_MESSAGE_COLOR_IN(net, CTRACE_WARN, SEA, "blue: %d, %d", 3, 4);
    CTRACE_PLOT_COLOUR("blue plot", compute(5), SEA);
    CTRACE_PLOT_UNIT_COLOR("blue load", "%", 0.5, SEA);
    CTRACE_PLOT_COLOUR_IN(net, "blue plot in net", 5u, SEA);
    CTRACE_FRAME_COLOUR("blue frames", SEA);
    CTRACE_FRAME_COLOR_IN(net, "blue frames in net", SEA);
    CTRACE_END(begun_in);
    CTRACE_END(begun);
}

static void check_colours(void) {
    const char *const points[] = {"blue with a value", "a blue text", "blue: %d, %d", "blue plot",
                                  "blue load", "blue plot in net", "blue frames", "blue frames in net"};
    size_t i;
    check_site("in blue", NULL, "", 16, 0, 0);
    check_site("in red", NULL, "net", 16, 0, 0);
    check_site("begun", NULL, "", 16, 0, 0);
    check_site("begun in net", NULL, "net", 16, 0, 0);
    check_site("in_colours", NULL, "dev", 17, 0, 0);
    check_colour("in blue", 0x33aaff);
    check_colour("in red", 0xff0000);
    check_colour("begun", 0x00aaff);
    check_colour("begun in net", 0x00ab00);
    check_colour("in_colours", 0);
    check_site("blue with a value", "n:i64", "", 24, 0, 0);
    check_site("red with a value", "x:f64", "net", 24, 0, 0);
    check_site("a blue text", "message:str", "", 28, 1, 0);
    check_site("blue: %d, %d", "message:str", "net", 28, 1, CTRACE_WARN);
    check_site("blue plot", "value:i64", "", 28, 2, 0);
    check_site("blue load", "value[%]:f64", "", 28, 2, 0);
    check_site("blue plot in net", "value:u64", "net", 28, 2, 0);
    check_site("blue frames", NULL, "", 20, 3, 0);
    check_site("blue frames in net", NULL, "net", 20, 3, 0);
    for (i = 0; i < sizeof points / sizeof *points; i++) check_colour(points[i], SEA);
    check_colour("red with a value", 0xff0000);
    computed = 0;
    in_colours();
    CHECK(computed == 0); /* nobody traces them */
    CHECK(switch_to(NULL, 1) > 0);
    in_colours();
    CHECK(computed == 2);
    computed = 0;
    CHECK(switch_to(NULL, 0) > 0);
    finish();
    CHECK(entry("in blue", 0) && entry("begun in net", 0) && entry("in_colours", 0));
    for (i = 0; i < sizeof points / sizeof *points; i++) CHECK(entry(points[i], 0));
    read_count = 0;
}

static void check_kinds(void) {
    const char *const names[] = {"read", "just a text: 100 percent, ü", "queue", "frames"};
    size_t i;
    check_site("read", "bytes:u64", NULL, 8, 0, 0);
    check_site("weigh", "kg:f64", "net", 8, 0, 0);
    check_site("just a text: 100 percent, ü", "message:str", NULL, 12, 1, 0);
    check_site("%s is %d (%.1f)", "message:str", NULL, 12, 1, 0);
    check_site("100 %%", "message:str", NULL, 12, 1, 4);
    check_site("lost %5s", "message:str", "net", 12, 1, 5);
    check_site("queue", "value:i64", NULL, 12, 2, 0);
    check_site("byte", "value:i64", NULL, 12, 2, 0);
    check_site("big", "value:u64", NULL, 12, 2, 0);
    check_site("third", "value:f64", NULL, 12, 2, 0);
    check_site("load", "value[%]:f64", NULL, 12, 2, 0);
    check_site("long", "value[ms]:i64", NULL, 12, 2, 0);
    check_site("in net", "value:u64", "net", 12, 2, 0);
    check_site("frames", NULL, NULL, 4, 3, 0);
    check_site("frames in net", NULL, "net", 4, 3, 0);
    check_site("frame scope", NULL, NULL, 0, 3, 0);
    check_site("frame scope in net", NULL, "net", 0, 3, 0);
    check_site("frame in parts", NULL, NULL, 0, 3, 0);
    check_site("frame in parts in net", NULL, "net", 0, 3, 0);

    every_kind(3, 2.5);
    CHECK(computed == 0 && !ctrace_c1_mine); /* off */
    CHECK(switch_to(NULL, 1) > 0);
    errno = 77;
    every_kind(3, 2.5);
    CHECK(errno == 77 && computed == 2);
    CHECK(switch_to(NULL, 0) > 0);
    finish();
    CHECK(value("read", 0) == 4 && float_value("weigh", 0) == 2.5);
    CHECK(strcmp(text("just a text: 100 percent, ü", 0), "just a text: 100 percent, ü") == 0);
    CHECK(strcmp(text("%s is %d (%.1f)", 0), "n is 3 (2.5)") == 0);
    CHECK(strcmp(text("100 %%", 0), "100 %") == 0);
    CHECK(strcmp(text("lost %5s", 0), "lost    it") == 0);
    CHECK(value("queue", 0) == (uint64_t)-3 && value("byte", 0) == 200 && value("big", 0) == ~UINT64_C(0));
    CHECK(float_value("third", 0) == 0.5 && float_value("load", 0) == 2.5);
    CHECK(value("long", 0) == 3 && value("in net", 0) == 7);
    CHECK(samples == 5); /* queue, byte, big (all bits are set, as in -1), long, in net */
    CHECK(entry("frames", 0)->count == 0 && entry("frames in net", 0)->length == -1);
    for (i = 0; i < sizeof names / sizeof names[0]; i++) CHECK(entry(names[i], 0)->sp == entry("around", 0)->sp);
    read_count = 0;
}

/* Texts of every length, the longest ones cut. What does not fit into a buffer is in the next one. */
static void check_lengths(void) {
    static char long_text[1300];
    int n, i;
    CHECK(switch_to("%.*s", 1) > 0 && switch_to("between", 1) > 0 && switch_to("%s", 1) > 0);
    memset(long_text, 'x', sizeof long_text - 1);
    for (n = 0; n <= 1010; n++) {
        CTRACE_MESSAGE("%.*s", n, long_text);
        CTRACE_PLOT("between", n);
    }
    for (n = 0; n < 3; n++) { /* two bytes each, from every border */
        for (i = n; i < 1200; i += 2) memcpy(long_text + i, "ü", 2);
        CTRACE_MESSAGE("%s", long_text);
    }
    CHECK(switch_to(NULL, 0) > 0);
    finish();
    for (n = 0; n <= 1010; n++) {
        const char *is = text("%.*s", n);
        CHECK(strspn(is, "x") == (size_t)(n <= 1008 ? n : 1005));
        CHECK(n <= 1008 ? strlen(is) == (size_t)n : strcmp(is + 1005, "…") == 0);
        CHECK(value("between", n) == (uint64_t)n);
    }
    for (n = 0; n < 3; n++) {
        const char *is = text("%s", n);
        CHECK(strcmp(is + strlen(is) - 3, "…") == 0 && strlen(is) == (n == 1 ? 1008u : 1007u));
    }
    CHECK(fillers > 0);
    read_count = 0;
}

/* Eight bytes that are no text would make a slot look torn: one of them is changed. */
static void check_bytes_that_are_no_text(void) {
    static const char bytes[] = "bytes \xff\xff\xff\xff\xff\xff\xff\xff";
    const char *is;
    CHECK(switch_to("no text: %s", 1) > 0);
    for (int n = 0; n < 2; n++) CTRACE_MESSAGE("no text: %s", bytes + n); /* eight and seven behind 15 */
    CHECK(switch_to(NULL, 0) > 0);
    finish();
    is = text("no text: %s", 0);
    CHECK(strlen(is) == 23 && memcmp(is, "no text: bytes ", 15) == 0);
    CHECK(is[15] == '\xfe' && memcmp(is + 16, bytes + 7, 7) == 0);
    is = text("no text: %s", 1);
    CHECK(strlen(is) == 22 && strcmp(is + 9, bytes + 1) == 0);
    read_count = 0;
}

static volatile sig_atomic_t handled;
static void handler(int number) {
    int i;
    (void)number;
    for (i = 0; i < (handled % 16 ? 2 : 60); i++) {
        CTRACE_MESSAGE("handler %d", (int)handled * 100 + i);
        CTRACE_PLOT("in handler", (int)handled * 100 + i);
    }
    handled = handled + 1;
}

static void check_handlers(void) {
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    struct sigaction action;
    int n, i, seen = 0, last = 0;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(switch_to("handler %d", 1) > 0 && switch_to("in handler", 1) > 0);
    CHECK(switch_to("turn %d", 1) > 0 && switch_to("turn", 1) > 0);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (n = 0; n < 20000 || handled < 500; n++) {
        CTRACE_MESSAGE("turn %d", n);
        CTRACE_SCOPE_VALUE("turn", "n", n);
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    CHECK(switch_to(NULL, 0) > 0);
    finish();
    for (i = 0; i < read_count; i++) {
        const char *name = site_name(reads[i].site);
        int is = -1;
        if (strcmp(name, "turn %d") == 0) CHECK(sscanf(reads[i].text, "turn %d", &is) == 1 && is == seen++);
        if (strcmp(name, "turn") == 0) CHECK((int)reads[i].values[0] == seen - 1);
        if (strcmp(name, "handler %d") == 0) CHECK(sscanf(reads[i].text, "handler %d", &is) == 1 && is >= 0);
        last += is >= 0 && name[0] == 'h';
    }
    CHECK(seen == n);
    for (i = 0, n = 0; i < handled; i++) n += i % 16 ? 2 : 60;
    CHECK(last == n);
}

static void check_thread_names(void) {
    static const char *const names[][2] = {
        {"parser", "parser"},
        {"fifteen bytes..", "fifteen bytes.."},
        {"a worker of y\xc3\xb6rk", "a worker of y\xc3\xb6"},
        {"a worker of yo\xc3\xb6k", "a worker of yo"},
        {"", ""},
    };
    unsigned i;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        char shown[16];
        errno = 7;
        CTRACE_THREAD_NAME(names[i][0]);
        CHECK(errno == 7);
        CHECK(ctrace_syscall_(157 /* prctl */, 16 /* PR_GET_NAME */, (long)shown, 0, 0) == 0);
        CHECK(strcmp(shown, names[i][1]) == 0);
    }
}

int main(void) {
    check_thread_names();
    start_reading();
    check_kinds();
    check_colours();
    check_lengths();
    check_bytes_that_are_no_text();
    check_handlers();
    return 0;
}
