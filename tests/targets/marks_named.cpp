// Scopes whose names are known only at run time, as CTRACK's CTRACK_NAME takes them: in threads, nested,
// in children, and in signal handlers that interrupt them. Counts the calls of each name.
// Usage: marks_named [ROUNDS=2000] [SIGNALS=500]
#include "ctrack/ctrack.hpp"
#include <csignal>
#include <cstdlib>
#include <sys/time.h>
#include <sys/wait.h>

static std::mutex lock;
static std::map<std::string, unsigned long> counts;
static std::atomic<unsigned long> handled[3];
static volatile long sink;

static void count(const std::string &name) {
    std::lock_guard<std::mutex> held(lock);
    counts[name]++;
}

// Of the longest ones, 252 bytes are the name.
static std::string name_of(int round, int thread) {
    std::string name = "t" + std::to_string(thread) + "_" + std::to_string(round % 16);
    return name + std::string(round % 16 == 15 ? 300 : round % 16 * 2, 'x');
}

static void leaf(const char *name) {
    CTRACK_NAME(name);
    sink = sink + 1;
}

static void work(int rounds, int thread) {
    for (int round = 0; round < rounds; round++) {
        std::string name = name_of(round, thread);
        CTRACK_NAME(name.c_str());
        count(name.substr(0, 252));
        if (round % 3 == 0) {
            CTRACK_DEV_NAME("literal");
            count("literal");
            leaf("leaf_a");
            leaf("leaf_b");
            count("leaf_a");
            count("leaf_b");
        }
    }
}

static void handler(int) {
    static const char *const names[] = {"signal_a", "signal_b", "signal_with_a_longer_name"};
    unsigned long which = (handled[0] + handled[1] + handled[2]) % 3;
    CTRACK_NAME(names[which]);
    handled[which]++;
}

static void storm(unsigned long signals) {
    std::signal(SIGALRM, handler);
    itimerval often = {{0, 100}, {0, 100}}, never = {};
    setitimer(ITIMER_REAL, &often, nullptr);
    unsigned long calls = 0;
    for (; handled[0] + handled[1] + handled[2] < signals; calls++) leaf("interrupted");
    setitimer(ITIMER_REAL, &never, nullptr);
    counts["interrupted"] += calls;
    counts["signal_a"] += handled[0];
    counts["signal_b"] += handled[1];
    counts["signal_with_a_longer_name"] += handled[2];
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? std::atoi(argv[1]) : 2000;
    std::thread other(work, rounds, 1);
    work(rounds, 0);
    other.join();
    storm(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 500);
    if (pid_t child = fork()) {
        waitpid(child, nullptr, 0);
        count("in_the_child");
    } else {
        leaf("in_the_child");
        std::exit(0);
    }
    for (const auto &[name, calls] : counts) std::cout << "calls " << name << " " << calls << "\n";
}
