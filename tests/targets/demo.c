/* The target of `cargo xtask demo`: a small server in miniature. Three named workers take requests,
 * parse, look up and render them; a fourth one writes a log now and then. Runs three seconds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FN __attribute__((noipa))

static volatile unsigned long sink;
static volatile int done;
static double seconds = 3;
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static char cache[256][64];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void doze(long microseconds) {
    struct timespec t = {0, microseconds * 1000};
    nanosleep(&t, NULL);
}

FN unsigned checksum(const char *text, size_t length) {
    unsigned sum = 2166136261u;
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ (unsigned char)text[i]) * 16777619u;
    return sum;
}

FN unsigned parse_request(const char *line) {
    unsigned sum = 0;
    for (int i = 0; i < 20; i++)
        sum += checksum(line, strlen(line));
    return sum;
}

FN void read_from_disk(unsigned key, char *out) {
    doze(key % 10 == 0 ? 4000 : 600); /* every tenth is slow */
    snprintf(out, 64, "row %u of the table", key);
}

FN int look_up(unsigned key, char *out) {
    pthread_mutex_lock(&cache_lock);
    int hit = key % 4 != 0 && cache[key % 256][0];
    if (hit)
        memcpy(out, cache[key % 256], 64);
    pthread_mutex_unlock(&cache_lock);
    if (hit)
        return 1;
    read_from_disk(key, out);
    pthread_mutex_lock(&cache_lock);
    memcpy(cache[key % 256], out, 64);
    pthread_mutex_unlock(&cache_lock);
    return 0;
}

FN unsigned compress(const char *text, int level) {
    unsigned sum = checksum(text, strlen(text));
    return level == 0 ? sum : sum ^ compress(text, level - 1);
}

FN unsigned render_page(const char *row, unsigned key) {
    char page[512];
    int length = 0;
    for (int i = 0; i < 5; i++)
        length += snprintf(page + length, sizeof page - (size_t)length, "<p>%s, %d</p>", row, i);
    return compress(page, (int)(key % 5));
}

FN void handle_request(unsigned number) {
    char line[64], row[64];
    snprintf(line, sizeof line, "GET /page/%u HTTP/1.1", number);
    unsigned key = parse_request(line) % 1000;
    look_up(key, row);
    sink += render_page(row, key);
    if (number % 50 == 0)
        doze(8000);
}

FN void write_log(void) { doze(30000); }

static void *worker(void *argument) {
    long index = (long)argument;
    char name[16];
    snprintf(name, sizeof name, "worker-%ld", index);
    pthread_setname_np(pthread_self(), name);
    double end = now() + seconds;
    for (unsigned i = 0; now() < end; i++) {
        handle_request(i * 3 + (unsigned)index);
        doze(500);
    }
    return NULL;
}

static void *logger(void *argument) {
    (void)argument;
    pthread_setname_np(pthread_self(), "logger");
    while (!done) {
        write_log();
        doze(120000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1)
        seconds = atof(argv[1]);
    pthread_t workers[3], log;
    pthread_create(&log, NULL, logger, NULL);
    for (long i = 0; i < 3; i++)
        pthread_create(&workers[i], NULL, worker, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(workers[i], NULL);
    done = 1;
    pthread_join(log, NULL);
    return 0;
}
