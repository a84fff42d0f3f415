// Every way to leave a frame without returning from it, in turns and in several threads.
// Usage: leave_frames [ROUNDS=20]
#include "count.h"
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

static std::atomic<long> destroyed;

struct Guard {
    ~Guard() { destroyed++; }
};

// Exceptions in eight threads at one moment.
static pthread_barrier_t all_are_here;

FN int thrower(int value) {
    pthread_barrier_wait(&all_are_here);
    throw std::runtime_error(std::to_string(value));
}

FN int passer(int depth, int value) {
    Guard guard;
    int below = depth ? passer(depth - 1, value) : thrower(value);
    KEEP(below);
    return below;
}

static long exceptions() {
    std::vector<long> caught(8);
    std::vector<std::thread> threads;
    pthread_barrier_init(&all_are_here, nullptr, 8);
    for (int i = 0; i < 8; i++)
        threads.emplace_back([i, &caught] {
            for (int j = 0; j < 5; j++)
                try {
                    passer(4, i + j);
                } catch (std::runtime_error &error) {
                    caught[i] += std::stol(error.what());
                }
        });
    for (std::thread &thread : threads)
        thread.join();
    pthread_barrier_destroy(&all_are_here);
    long sum = 0;
    for (long one : caught)
        sum += one;
    return sum;
}

// A thread is cancelled under frames with destructors.
static std::atomic<bool> waits;

FN int blocked(int depth) {
    Guard guard;
    if (depth) {
        int below = blocked(depth - 1);
        KEEP(below);
        return below;
    }
    waits = true;
    for (;;)
        pause();
}

static long cancellation() {
    waits = false;
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void *) -> void * {
            blocked(3);
            return nullptr;
        },
        nullptr);
    while (!waits)
        sched_yield();
    pthread_cancel(thread);
    void *result;
    pthread_join(thread, &result);
    return result == PTHREAD_CANCELED;
}

// A handler looks at the stack that it interrupts.
static long frames;

FN void look_at_stack(int) {
    void *addresses[64];
    frames += backtrace(addresses, 64);
}

FN int raiser(int depth, int signal) {
    int below = depth ? raiser(depth - 1, signal) : raise(signal);
    KEEP(below);
    return below;
}

static long backtraces() {
    frames = 0;
    signal(SIGUSR1, look_at_stack);
    raiser(3, SIGUSR1);
    return frames;
}

// A handler throws through the frames that it interrupts.
FN void throw_from_handler(int) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigprocmask(SIG_UNBLOCK, &mask, nullptr);
    throw 7;
}

static long handler_throws() {
    signal(SIGUSR2, throw_from_handler);
    try {
        raiser(3, SIGUSR2);
    } catch (int value) {
        return value;
    }
    return 0;
}

// A handler on a stack of its own jumps out.
static sigjmp_buf back;

FN void jump_out(int) {
    siglongjmp(back, 1);
}

static long jumps_out_of_handlers() {
    static char memory[1 << 16];
    stack_t stack = {};
    stack.ss_sp = memory;
    stack.ss_size = sizeof memory;
    sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_handler = jump_out;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGALRM, &action, nullptr);
    if (sigsetjmp(back, 1) == 0) {
        raiser(3, SIGALRM);
        return 0;
    }
    return 1;
}

// A forked child throws through frames of its parent.
FN int throw_in_child(int depth) {
    Guard guard;
    if (depth) {
        int below = throw_in_child(depth - 1);
        KEEP(below);
        return below;
    }
    pid_t child = fork();
    if (child == 0)
        throw 41;
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static long children() {
    try {
        return throw_in_child(3);
    } catch (int value) {
        _exit(value);
    }
}

// A coroutine that goes on in another thread each time.
static ucontext_t caller, coroutine;
static long steps;

FN int yielding(int depth, int value) {
    if (depth) {
        int below = yielding(depth - 1, value + 1);
        KEEP(below);
        return below;
    }
    steps += value;
    swapcontext(&coroutine, &caller);
    steps += value;
    return value;
}

static void body() {
    for (int i = 0; i < 3; i++)
        steps += yielding(i, i);
}

FN void resume() {
    swapcontext(&caller, &coroutine);
}

static long migrations() {
    static char memory[1 << 16];
    steps = 0;
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = memory;
    coroutine.uc_stack.ss_size = sizeof memory;
    coroutine.uc_link = &caller;
    makecontext(&coroutine, body, 0);
    for (int i = 0; i < 4; i++)
        std::thread(resume).join();
    return steps;
}

FN int round_of(int kind) {
    static long (*const kinds[])() = {exceptions,     cancellation,          backtraces, handler_throws,
                                      jumps_out_of_handlers, children, migrations};
    long value = kinds[kind]();
    KEEP(value);
    return (int)value;
}

int main(int argc, char **argv) {
    long sums[7] = {};
    for (long round = number(argc, argv, 1, 20); round > 0; round--)
        for (int kind = 0; kind < 7; kind++)
            sums[kind] += round_of(kind);
    for (long sum : sums)
        printf("sum %ld\n", sum);
    printf("destroyed %ld\n", destroyed.load());
    return 0;
}
