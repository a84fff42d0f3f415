/* A library with a lock, for dl.c. */
#include "count.h"
#include <pthread.h>

static pthread_mutex_t plug_lock = PTHREAD_MUTEX_INITIALIZER;
COUNTER(plug_work);

FN long plug_work(long x) {
    pthread_mutex_lock(&plug_lock);
    COUNT(plug_work);
    pthread_mutex_unlock(&plug_lock);
    return x;
}

void plug_show(void) {
    SHOW(plug_work);
}
