/* Scopes, and a target's reports about its own: which are on, and how they ended.
 *
 * Each scope is counted like a function (`calls NAME N`). Calls without an end are in a line
 * `untimed NAME N` or `open NAME N`, and ends without a beginning in `headless NAME N`. All other
 * calls must be timed. */
#ifndef MARKS_H
#define MARKS_H
#include "count.h"
#include "ctrace.h"
#include <string.h>
#include <time.h>

/* The entry of a scope in the file, as in docs/marker-format.md. */
struct marks_site {
    uint8_t version, flags;
    uint16_t reserved;
    uint32_t line;
    int32_t name, file, group, semaphore, point, text;
};

extern const struct marks_site marks_first[] __asm__("__start_ctrace_sites")
    __attribute__((visibility("hidden")));
extern const struct marks_site marks_end[] __asm__("__stop_ctrace_sites")
    __attribute__((visibility("hidden")));

static inline const char *marks_name(const struct marks_site *site) {
    return (const char *)&site->name + site->name;
}

static inline unsigned marks_semaphore(const struct marks_site *site) {
    return *(const volatile uint16_t *)((const char *)&site->semaphore + site->semaphore);
}

/* Prints ` NAME=VALUE` for each scope of this object. */
static inline void marks_print_semaphores(void) {
    const struct marks_site *site;
    for (site = marks_first; site < marks_end; site++)
        printf(" %s=%u", marks_name(site), marks_semaphore(site));
}

static inline void marks_doze(long milliseconds) {
    struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Waits until a scope of this object is on. Returns 0 after half a minute. */
static inline int marks_wait_until_on(const char *name) {
    const struct marks_site *site;
    int i;
    for (i = 0; i < 3000; i++) {
        for (site = marks_first; site < marks_end; site++)
            if (strcmp(marks_name(site), name) == 0 && marks_semaphore(site) != 0)
                return 1;
        marks_doze(10);
    }
    return 0;
}

#define SHOW_UNTIMED(name, number) printf("untimed %s %lu\n", #name, (unsigned long)(number))
#define SHOW_HEADLESS(name, number) printf("headless %s %lu\n", #name, (unsigned long)(number))
#endif
