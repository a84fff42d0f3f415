/* Takes backtraces of itself in every way, and prints the first of each kind by the names of its
 * functions, and how many others differ from that.
 * Usage: own_backtraces [ROUNDS=20] */
#include "count.h"
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

enum { KINDS = 5, TEXT = 512, DEEPEST = 64 };
static char now[TEXT];

long deep(long kind, long depth);
void in_handler(int number);
void look(void);
void look_otherwise(void);
long round_of(long kind);
int main(int argc, char **argv);
void _start(void);
extern char __executable_start, etext;

static const struct {
    const char *name;
    void *start;
} functions[] = {{"deep", deep}, {"in_handler", in_handler}, {"look", look},
                 {"look_otherwise", look_otherwise}, {"round_of", round_of}, {"main", main},
                 {"_start", _start}};

/* The function that contains an address; of libraries only that it is one. A call may be a
 * function's last instruction, so an address at a start belongs to the function before. */
static const char *name_of(char *address) {
    const char *name = "other";
    char *nearest = NULL;
    if (address < &__executable_start || address >= &etext)
        return "library";
    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
        char *start = functions[i].start;
        if (start < address && start > nearest) {
            nearest = start;
            name = functions[i].name;
        }
    }
    return name;
}

static void describe(void *const *addresses, int count) {
    now[0] = 0;
    while (count && !addresses[count - 1])
        count--;
    for (int i = 0; i < count && strlen(now) < TEXT - 32; i++) {
        strcat(now, name_of(addresses[i]));
        strcat(now, i + 1 < count ? " < " : "");
    }
}

FN void look(void) {
    void *addresses[DEEPEST];
    describe(addresses, backtrace(addresses, DEEPEST));
}

struct walk {
    void *addresses[DEEPEST];
    int count;
};

static _Unwind_Reason_Code at_frame(struct _Unwind_Context *context, void *of) {
    struct walk *walk = of;
    if (walk->count < DEEPEST)
        walk->addresses[walk->count++] = (void *)_Unwind_GetIP(context);
    return _URC_NO_REASON;
}

FN void look_otherwise(void) {
    struct walk walk = {.count = 0};
    _Unwind_Backtrace(at_frame, &walk);
    describe(walk.addresses, walk.count);
}

static int crash_report = -1;

FN void in_handler(int number) {
    look();
    if (number == SIGSEGV) {
        write(crash_report, now, strlen(now) + 1);
        _exit(7);
    }
}

static volatile int *nowhere;

/* A child crashes within calls of its parent, and tells where. */
static long crash(void) {
    int ends[2], status;
    if (pipe(ends))
        return 1;
    crash_report = ends[1];
    pid_t child = fork();
    if (child == 0)
        return *nowhere;
    close(ends[1]);
    memset(now, 0, TEXT);
    read(ends[0], now, TEXT - 1);
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

FN long deep(long kind, long depth) {
    long result = 0;
    if (depth)
        result = deep(kind, depth - 1);
    else if (kind == 0)
        look();
    else if (kind == 1)
        look_otherwise();
    else if (kind == 2)
        raise(SIGUSR1);
    else if (kind == 3)
        raise(SIGUSR2); /* its handler has a stack of its own */
    else
        result = crash();
    KEEP(result);
    return result + 1;
}

FN long round_of(long kind) {
    long value = deep(kind, 3);
    KEEP(value);
    return value * 5;
}

static void handle(int number, int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = in_handler;
    action.sa_flags = flags;
    sigaction(number, &action, NULL);
}

int main(int argc, char **argv) {
    static char first[KINDS][TEXT], memory[1 << 16];
    stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    long sum = 0, differ = 0;
    sigaltstack(&stack, NULL);
    handle(SIGUSR1, 0);
    handle(SIGUSR2, SA_ONSTACK);
    handle(SIGSEGV, SA_ONSTACK);
    for (long round = number(argc, argv, 1, 20); round > 0; round--) {
        for (int kind = 0; kind < KINDS; kind++) {
            sum += round_of(kind);
            if (!first[kind][0])
                strcpy(first[kind], now);
            differ += strcmp(first[kind], now) != 0;
        }
        usleep(8000);
    }
    for (int kind = 0; kind < KINDS; kind++)
        puts(first[kind]);
    printf("differ %ld\nsum %ld\n", differ, sum);
    return 0;
}
