// Scopes whose names are known only at run time, in a program and in signal handlers that interrupt it
// anywhere. Each entry comes with its whole name.
#include "ctrack/ctrack.hpp"
#include "support.h"
#include <signal.h>
#include <sys/time.h>

static const int NAMES = 6, HANDLER_NAMES = 3;
static char texts[NAMES + HANDLER_NAMES][320];
static long made[NAMES + HANDLER_NAMES], seen[NAMES + HANDLER_NAMES], fillers, taken;

static void make_names() {
    const int lengths[NAMES + HANDLER_NAMES] = {0, 1, 7, 8, 100, 300, 3, 30, 252};
    for (int n = 0; n < NAMES + HANDLER_NAMES; n++) memset(texts[n], 'a' + n, (size_t)lengths[n]);
}

static void count(const char *name, int length) {
    for (int n = 0; n < NAMES + HANDLER_NAMES; n++) {
        int known = (int)strnlen(texts[n], 252);
        if (known == length && memcmp(texts[n], name, (size_t)length) == 0) {
            __atomic_fetch_add(&seen[n], 1, __ATOMIC_RELAXED);
            return;
        }
    }
    CHECK(!"a name that nobody made");
}

// Reads the slots as docs/marker-format.md tells.
static void read_names(struct ctrace_c1_buffer *buffer) {
    char name[2 * 252];
    int length = -1;
    for (int i = 0; i < 252; i++) {
        uint64_t tag = buffer->slots[i][1];
        int kind = (int)(tag >> 2 & 7);
        if (!tag) continue;
        taken++;
        if (kind == 0) {
            if (!(tag & 1)) {
                CHECK(length >= 0);
                count(name, length);
            }
            length = -1;
            continue;
        }
        CHECK((tag & 3) == 0);
        if (kind == 3) {
            CHECK(length == -1);
            fillers++;
            continue;
        }
        length = add_piece(name, length, buffer->slots[i]);
        CHECK(length <= 252);
    }
    CHECK(length == -1);
}

static void flushed(struct ctrace_c1_buffer *buffer) { read_names(buffer); }

static __attribute__((noinline)) void scope(int n) {
    CTRACK_NAME(texts[n]);
    __atomic_fetch_add(&made[n], 1, __ATOMIC_RELAXED);
}

static volatile sig_atomic_t handled;
static void handler(int) {
    for (int i = 0; i < 1 + handled % 5; i++) scope(NAMES + (handled + i) % HANDLER_NAMES);
    handled = handled + 1;
}

int main() {
    make_names();
    patch(ctrace_c1_flush, flushed);
    CHECK(switch_to(nullptr, 1) > 0);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &often, nullptr) == 0);
    for (int i = 0; i < 200000 || handled < 2000; i++) {
        CTRACK_NAME(texts[1]);
        made[1]++;
        scope(i % NAMES);
    }
    CHECK(setitimer(ITIMER_REAL, &never, nullptr) == 0);
    CHECK(switch_to(nullptr, 0) > 0);
    for (struct ctrace_c1_buffer *buffer = ctrace_c1_list; buffer; buffer = buffer->next) read_names(buffer);
    for (int n = 0; n < NAMES + HANDLER_NAMES; n++) CHECK(seen[n] == made[n]);
    CHECK(fillers > 0);
    uint64_t written = 0;
    for (struct ctrace_c1_buffer *buffer = ctrace_c1_list; buffer; buffer = buffer->next)
        written += buffer->events;
    CHECK(written <= (uint64_t)taken * 2);
    return 0;
}
