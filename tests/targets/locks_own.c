// Has a pthread_mutex_lock of its own, which calls that of libc. All the rest is libc's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMES = 30, TRIES = 4 };

static pthread_mutex_t wrapped_lock = PTHREAD_MUTEX_INITIALIZER;
static int (*libc_lock)(pthread_mutex_t *);
static int calls;

int pthread_mutex_lock(pthread_mutex_t *lock) {
    if (libc_lock == NULL)
        libc_lock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    int result = libc_lock(lock);
    calls++;
    return result;
}

int main(void) {
    for (int i = 0; i < TIMES; i++) {
        pthread_mutex_lock(&wrapped_lock);
        for (int j = 0; j < (i == 0 ? TRIES : 0); j++)
            if (pthread_mutex_trylock(&wrapped_lock) == 0)
                abort();
        pthread_mutex_unlock(&wrapped_lock);
    }
    printf("wrapped_lock %d\n", calls);
    return 0;
}
