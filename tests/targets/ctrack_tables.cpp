// A program written for CTRACK that asks for its own tables. Prints each as a line of JSON.
// Usage: ctrack_tables once | periods | print | children | attached | often | forged FILE

// A program may have any of the headers' words as names of its own.
enum colour { green, blue };
struct reply {};
struct number {};
struct row {};
int active, sd, cv, calls, line;

#include "ctrack/ctrack.hpp"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/socket.h>
#include <sys/wait.h>

static std::atomic<long> sink;

static void spend(int rounds) {
    for (int i = 0; i < rounds; i++) sink += i;
}

static void inner(int rounds) {
    CTRACK;
    spend(rounds);
}

static void outer(int rounds, const char *name) {
    CTRACK;
    for (int i = 0; i < 5; i++) inner(rounds * (i + 1));
    CTRACK_NAME(name);
    spend(rounds);
}

static void work(int calls) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; thread++)
        threads.emplace_back([=] {
            const std::string name = "of thread " + std::to_string(thread % 2);
            for (int call = 0; call < calls; call++) outer(20 * (call % 7 + 1), name.c_str());
        });
    for (auto &thread : threads) thread.join();
}

static void print(const ctrack::ctrack_result_tables &tables) {
    std::printf("{\"total\":%ld,\"tracked\":%ld,\"rows\":[", (long)tables.time_total.count(),
                (long)tables.time_ctracked.count());
    for (std::size_t i = 0; i < tables.details.rows.size(); i++) {
        const ctrack::detail_stats &row = tables.details.rows[i];
        const ctrack::summary_row &sum = tables.summary.rows[i];
        if (sum.function_name != row.function_name || sum.calls != row.calls || sum.time_ae_all != row.time_ae_all)
            std::abort();
        std::printf(
            "%s{\"name\":\"%s\",\"file\":\"%s\",\"line\":%d,\"calls\":%d,\"threads\":%d,\"time_acc_ns\":%ld,\"sd_ns\":%ld,"
            "\"cv\":%.17g,\"active_ns\":%ld,\"active_exclusive_ns\":%ld,\"fastest_min_ns\":%ld,\"fastest_mean_ns\":%ld,"
            "\"center_min_ns\":%ld,\"center_mean_ns\":%ld,\"center_median_ns\":%ld,\"center_active_ns\":%ld,"
            "\"center_active_exclusive_ns\":%ld,\"center_max_ns\":%ld,\"slowest_mean_ns\":%ld,\"slowest_max_ns\":%ld,"
            "\"percent\":%.17g}",
            i ? "," : "", row.function_name.c_str(), row.filename.c_str(), row.line, row.calls, row.threads,
            (long)row.time_acc.count(), (long)row.sd.count(), row.cv, (long)row.time_a_all.count(),
            (long)row.time_ae_all.count(), (long)row.fastest_min.count(), (long)row.fastest_mean.count(),
            (long)row.center_min.count(), (long)row.center_mean.count(), (long)row.center_med.count(),
            (long)row.center_time_a.count(), (long)row.center_time_ae.count(), (long)row.center_max.count(),
            (long)row.slowest_mean.count(), (long)row.slowest_max.count(), sum.percent_ae_all);
    }
    std::puts("]}");
    std::fflush(stdout);
}

static void ask() { print(ctrack::result_get_tables()); }

// Calls that lie in one period, those between two, and those that were cleared.
static void periods() {
    work(40);
    ask();
    ask();
    inner(10);
    inner(10);
    ask();
    inner(10);
    ctrack::clear_a_store();
    inner(10);
    ctrack::ctrack_result_settings settings;
    settings.non_center_percent = 10;
    print(ctrack::result_get_tables(settings));
    for (int i = 0; i < 10; i++) inner(10);
    settings.percent_exclude_fastest_active_exclusive = 100;
    print(ctrack::result_get_tables(settings));
}

// Each process has its own calls.
static void children() {
    inner(10);
    std::fflush(stdout);
    if (fork() == 0) {
        outer(10, "in the child");
        ask();
        std::_Exit(0);
    }
    wait(nullptr);
    ask();
}

// Asks until there is something.
static void attached() {
    std::puts("ready");
    std::fflush(stdout);
    for (;;) {
        inner(10);
        const ctrack::ctrack_result_tables tables = ctrack::result_get_tables();
        if (!tables.details.rows.empty()) return print(tables);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

// Tells ctrace that the answer goes to this file, and that results were cleared at some time.
static void forge(std::uint64_t file) {
    const std::uint64_t values[] = {file, UINT64_MAX};
    const ctrace_c1_data data = {values, nullptr, 2, 0, 0};
    (void)CTRACE_ENTER_BY_(12 | 4 << 8, "tables\0file:u64,cleared:u64", 0, CTRACE_NO_GROUP_,
                           (ctrace_c1_slow_with(0, ctrace_sp_ >> 4, ctrace_tag_(ctrace_site_, ctrace_sp_), &data), 0));
}

// Fills a file with a request, as far as it can be written to.
static int requested(int file, std::uint64_t bytes, std::uint64_t since = 0) {
    const std::uint64_t request[] = {0x0174656361727463u, 1, since, 0, 1, 0, 0, 0};
    if (ftruncate(file, (off_t)bytes) || pwrite(file, request, sizeof request, 0) != sizeof request) std::abort();
    return file;
}

static int sealed(int file, int seals) {
    if (fcntl(file, 1033 /* F_ADD_SEALS */, seals)) std::abort();
    return file;
}

static std::uint64_t state_of(int file) {
    std::uint64_t state = 0;
    return pread(file, &state, sizeof state, 8) == sizeof state ? state : 0;
}

static int memory() { return (int)syscall(319 /* memfd_create */, "", 2 /* MFD_ALLOW_SEALING */); }

// Names files that are none of ctrace's business. None of them may change.
static int forged(const char *path) {
    inner(10);
    std::vector<int> files;
    files.push_back(requested(open(path, O_RDWR | O_CREAT, 0600), 8192));
    files.push_back(requested(memory(), 8192));                             // it may shrink
    files.push_back(sealed(requested(memory(), 8192), 4 /* F_SEAL_GROW */)); // so may this
    files.push_back(sealed(requested(memory(), 4095), 2));
    files.push_back(sealed(requested(memory(), (16 << 20) + 1), 2));
    files.push_back(sealed(requested(memory(), 8192), 2 | 8 /* F_SEAL_WRITE */));
    int other = sealed(requested(memory(), 8192), 2);
    std::uint64_t word = 7;
    if (pwrite(other, &word, sizeof word, 0) != sizeof word) std::abort(); // no request
    files.push_back(other);
    for (int file : files) {
        forge((std::uint64_t)file);
        ask(); // so that they do not come too often
    }
    int pipes[2], sockets[2];
    if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets)) std::abort();
    for (std::uint64_t file : {(std::uint64_t)pipes[0], (std::uint64_t)sockets[0], UINT64_MAX, UINT64_C(1) << 31,
                               UINT64_C(12345)}) {
        forge(file);
        ask();
    }
    for (int file : files)
        if (state_of(file) != 1) return 2;
    // This one is right, but for its times.
    int wild = sealed(requested(memory(), 4096, UINT64_MAX), 2);
    forge((std::uint64_t)wild);
    ask();
    return state_of(wild) == 2 ? 0 : 3;
}

// Asks as fast as it can, and then once as it should.
static void often() {
    std::vector<int> files;
    for (int i = 0; i < 64; i++) files.push_back(sealed(requested(memory(), 1 << 20), 2));
    for (int i = 0; i < 1000000; i++) forge((std::uint64_t)files[(std::size_t)i % files.size()]);
    inner(10);
    ask();
    int answered = 0;
    for (int file : files) answered += state_of(file) != 1;
    std::printf("%d\n", answered);
}

int main(int number, char **arguments) {
    const std::string what = number > 1 ? arguments[1] : "";
    if (what == "once") work(200), ask();
    if (what == "periods") periods();
    if (what == "children") children();
    if (what == "attached") attached();
    if (what == "often") often();
    if (what == "forged") return forged(arguments[2]);
    if (what == "print") {
        work(2);
        std::cout << ctrack::result_as_string();
        inner(10);
        ctrack::result_print();
    }
    return 0;
}
