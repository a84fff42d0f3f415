// Takes a lock, and another one in a child, which then executes the program once more for a third one.
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARENT = 5, CHILD = 7, LAST = 3 };

static pthread_mutex_t parent_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t child_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;

static void take(pthread_mutex_t *lock, int times) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(lock);
        pthread_mutex_unlock(lock);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) {
        take(&last_lock, LAST);
        return 0;
    }
    take(&parent_lock, PARENT);
    pid_t child = fork();
    if (child == 0) {
        take(&child_lock, CHILD);
        execl(argv[0], argv[0], "last", (char *)NULL);
        return 1;
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        return 1;
    printf("parent_lock %d\nchild_lock %d\nlast_lock %d\n", PARENT, CHILD, LAST);
    return 0;
}
