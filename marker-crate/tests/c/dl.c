/* A library with scopes is opened and closed while threads live that used it. */
#include "support.h"
#include <dlfcn.h>
#include <pthread.h>

static pthread_barrier_t barrier;
static int (*work)(int);

static __attribute__((noinline)) int own(int x) {
    CTRACE_FUNCTION;
    return x;
}
static void *thread(void *unused) {
    for (int i = 0; i < 10; i++) work(i), own(i);
    pthread_barrier_wait(&barrier); /* used */
    pthread_barrier_wait(&barrier); /* closed */
    own(1);
    return unused; /* the thread ends after the library has gone */
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    capture();
    switch_to(NULL, 1);
    own(1);
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(arguments[1], RTLD_NOW);
        if (!library) fprintf(stderr, "%s\n", dlerror());
        CHECK(library);
        int (*plugin_switch)(int), (*plugin_count)(void);
        void (*plugin_capture)(void);
        struct ctrace_c1_buffer *(*plugin_list)(void);
        *(void **)&work = dlsym(library, "plugin_work");
        *(void **)&plugin_switch = dlsym(library, "plugin_switch");
        *(void **)&plugin_capture = dlsym(library, "plugin_capture");
        *(void **)&plugin_count = dlsym(library, "plugin_count");
        *(void **)&plugin_list = dlsym(library, "plugin_list");
        CHECK(work(1) == 2 && plugin_list() == NULL);
        plugin_capture();
        CHECK(plugin_switch(1) == 1);
        CHECK(work(1) == 2 && plugin_list() != NULL && plugin_list()->next == NULL);
        CHECK(plugin_list() != ctrace_c1_list);

        pthread_t id;
        CHECK(pthread_create(&id, NULL, thread, NULL) == 0);
        pthread_barrier_wait(&barrier);
        CHECK(plugin_list()->next != NULL && plugin_count() == 0);
        struct ctrace_c1_buffer *buffer = plugin_list();
        CHECK(dlclose(library) == 0); /* flushes what this thread has written: "flush" is printed */
        CHECK(buffer->magic != 0);    /* and nothing is unmapped */
        CHECK(dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) == NULL);
        pthread_barrier_wait(&barrier);
        CHECK(pthread_join(id, NULL) == 0);
    }
    collect_all();
    CHECK(check_nesting(0) == 1 + 3 * 11);
    return 0;
}
