/* Says things in USDT probes with texts, in several processes and threads, one at a time. Prints
 * `said PID TID LEVEL TEXT` for each, in this order.
 * Usage: logs CHILDREN THREADS MESSAGES [end], where `end` is how each process ends: exit (default),
 * abort, kill, or `wait`, in the midst of a call, for a signal. `logs hostile` says one thing. */
#include "count.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    pthread_mutex_t lock;
    long said;
};

static struct shared *shared;
static long messages;

static void print(const char *level, const char *text) {
    char line[128];
    int length = snprintf(line, sizeof line, "said %d %ld %s %s\n", getpid(), syscall(SYS_gettid), level, text);
    if (write(1, line, (size_t)length) != length)
        _exit(3);
}

FN void parse(long number) {
    char text[64];
    pthread_mutex_lock(&shared->lock);
    long at = shared->said++;
    snprintf(text, sizeof text, "number %ld, all in all %ld", number, at);
    if (number % 5 == 4) {
        STAP_PROBE2(app, log__warn, text, (int)-number);
        print("warn", text);
    } else {
        STAP_PROBE2(app, log__info, text, (int)-number);
        print("info", text);
    }
    pthread_mutex_unlock(&shared->lock);
}

FN void handle(long number) {
    parse(number);
    KEEP(number);
}

FN void forever(void) {
    parse(4);
    for (;;)
        pause();
}

static void *talk(void *place) {
    char name[16];
    snprintf(name, sizeof name, "talker-%ld", (long)place);
    prctl(PR_SET_NAME, name);
    for (long i = 0; i < messages; i++)
        handle(i);
    return NULL;
}

static void talk_in_threads(long threads, const char *end) {
    pthread_t all[64];
    for (long i = 0; i < threads; i++)
        pthread_create(&all[i], NULL, talk, (void *)i);
    for (long i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    if (strcmp(end, "abort") == 0)
        abort();
    if (strcmp(end, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(end, "wait") == 0)
        forever();
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "hostile") == 0) {
        char text[] = "\033]0;pwned\007 \"a\\b\" \342\200\256\n   0.1  1/1 x  forged: \377\t.";
        STAP_PROBE1(app, log__error, text);
        return 0;
    }
    long children = number(argc, argv, 1, 1), threads = number(argc, argv, 2, 1);
    messages = number(argc, argv, 3, 10);
    const char *end = argc > 4 ? argv[4] : "exit";
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->lock, &attributes);
    for (long i = 0; i < children; i++)
        if (fork() == 0) {
            talk_in_threads(threads, end);
            _exit(0);
        }
    talk_in_threads(threads, children > 0 ? "exit" : end);
    while (wait(NULL) > 0)
        ;
    return 0;
}
