/* Holds all threads of a process until its input ends, and prints their registers, a line for each
 * thread: its id, and the registers in the order of their numbers in DWARF.
 * Usage: registers PID */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4096 };
static struct {
    int id, signal, held;
} threads[MOST];
static int count;

static int known(int id) {
    for (int i = 0; i < count; i++)
        if (threads[i].id == id)
            return 1;
    return 0;
}

/* Its own signal goes on with it. */
static void hold(int id) {
    int status;
    threads[count].id = id;
    if (ptrace(PTRACE_SEIZE, id, 0, 0) == 0 && ptrace(PTRACE_INTERRUPT, id, 0, 0) == 0 &&
        waitpid(id, &status, __WALL) == id && WIFSTOPPED(status)) {
        threads[count].held = 1;
        threads[count].signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
    }
    count++;
}

/* Returns whether there were new threads. */
static int hold_new(const char *folder) {
    int before = count;
    struct dirent *entry;
    DIR *list = opendir(folder);
    while (list && count < MOST && (entry = readdir(list)))
        if (atoi(entry->d_name) && !known(atoi(entry->d_name)))
            hold(atoi(entry->d_name));
    if (list)
        closedir(list);
    return count > before;
}

static void show(int id) {
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, id, 0, &r) == 0)
        printf("%d %llx %llx %llx %llx %llx %llx %llx %llx %llx %llx %llx %llx %llx %llx %llx %llx "
               "%llx\n",
               id, r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10,
               r.r11, r.r12, r.r13, r.r14, r.r15, r.rip);
}

int main(int argc, char **argv) {
    char folder[64];
    snprintf(folder, sizeof folder, "/proc/%s/task", argc > 1 ? argv[1] : "0");
    while (hold_new(folder))
        ;
    for (int i = 0; i < count; i++)
        if (threads[i].held)
            show(threads[i].id);
    puts("end");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    for (int i = 0; i < count; i++)
        if (threads[i].held)
            ptrace(PTRACE_DETACH, threads[i].id, 0, threads[i].signal);
    return 0;
}
