// SPDX-License-Identifier: MIT OR Apache-2.0
//
// ctrack_tables.hpp: asks a ctrace that traces the program for CTRACK's numbers of its calls.
// ctrack_compat.hpp includes it; nobody else needs it.
//
// While no ctrace answers, a question costs one comparison. Else the thread makes a file in memory, tells
// ctrace its number by a point, and waits until ctrace has written the answer there. That takes some 0.2 s,
// as ctrace needs the calls of all threads and looks at them now and then, and longer after millions of calls.
// The thread waits at most CTRACK_TABLES_WAIT_MS milliseconds (2000 unless defined otherwise) for ctrace to
// begin, and ten times as long for it to be done. One thread asks at a time. docs/marker-format.md specifies
// the file.
#ifndef CTRACK_TABLES_HPP
#define CTRACK_TABLES_HPP

#include "ctrace.h"

// Without scopes there is nothing to ask for.
#if CTRACE_ENABLED && !defined(CTRACK_DISABLE)
#define CTRACK_ASKS_ 1
#else
#define CTRACK_ASKS_ 0
#endif

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#if CTRACK_ASKS_
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#endif

#ifndef CTRACK_TABLES_WAIT_MS
#define CTRACK_TABLES_WAIT_MS 2000
#endif

namespace ctrack_c1 {

// The outcome of a question.
enum class reply {
    compiled_out,
    nobody,    // no ctrace traces the program, or it does not answer such questions
    late,      // no answer in time
    too_often, // the answers would take too much of ctrace's time
    no_calls,  // ctrace has no room for all calls
    too_much,  // ctrace has written as many tables for the program as it does
    tables
};

// The numbers of a function, in the order of the file.
enum number {
    row_bytes, line, text_bytes, calls, threads, time_acc, sd, cv, active, active_exclusive, fastest_min,
    fastest_mean, center_min, center_mean, center_median, center_active, center_active_exclusive, center_max,
    slowest_mean, slowest_max, row_words
};

struct row {
    std::uint64_t numbers[row_words];
    std::string name;
    std::string file;
};

struct answer {
    reply what = reply::compiled_out;
    std::uint64_t start = 0; // nanoseconds, on the clock of ctrace
    std::uint64_t end = 0;
    std::uint64_t tracked = 0;
    std::uint64_t left_out = 0; // rows that found no room, those of the least time
    std::vector<row> rows;
};

// The time from which on calls count: the end of the last answer, or the time at which the program cleared its
// results, in nanoseconds and, if it is known, on the clock of scopes. 0: none.
//
// A thread that asks waits for others, and may be gone in a forked child: nobody waits for the lock.
struct period {
    std::mutex asking;
    std::uint64_t since = 0;
    // How long the program waited for the last answer, in nanoseconds: that is no time of its own.
    std::uint64_t waited = 0;
    // A file without an answer: while it is open, no later question has its number.
    int given_up = -1;
    std::atomic<std::uint64_t> cleared;
    std::atomic<std::uint64_t> cleared_ticks{0};
};

#if CTRACK_ASKS_

// The words of the file.
enum place : std::size_t {
    magic_at, state_at, since_at, age_at, center_at, waited_at,
    start_at = 8, end_at, tracked_at, rows_at, bytes_at, left_out_at,
    first_row_at = 16
};
enum state : std::uint64_t { asked = 1, has_tables = 2, has_nothing = 3, in_the_making = 4, given_up = 5 };

inline std::uint64_t nanoseconds() {
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u + static_cast<std::uint64_t>(now.tv_nsec);
}

// The first period begins with the program.
inline period the_period{{}, 0, 0, -1, {nanoseconds()}, {0}};

// A file in memory that cannot shrink: ctrace may rely on its size.
class shared_file {
  public:
    enum : std::size_t { bytes = 4 << 20 };
    shared_file() {
        const char name[] = "ctrack tables";
        const int flags = 3; // MFD_CLOEXEC, MFD_ALLOW_SEALING
        descriptor = static_cast<int>(
            ctrace_syscall_(319 /* memfd_create */, reinterpret_cast<long>(name), flags, 0, 0));
        if (descriptor < 0 || ftruncate(descriptor, bytes) != 0) return;
        if (fcntl(descriptor, 1033 /* F_ADD_SEALS */, 2 /* F_SEAL_SHRINK */) != 0) return;
        void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (mapped != MAP_FAILED) words = static_cast<std::uint64_t *>(mapped);
    }
    ~shared_file() {
        if (words) munmap(words, bytes);
        if (descriptor >= 0) close(descriptor);
    }
    // Leaves the descriptor open.
    int take() {
        const int taken = descriptor;
        descriptor = -1;
        return taken;
    }
    shared_file(const shared_file &) = delete;
    shared_file &operator=(const shared_file &) = delete;

    std::uint64_t get(std::size_t at) const { return __atomic_load_n(words + at, __ATOMIC_ACQUIRE); }
    void put(std::size_t at, std::uint64_t word) { __atomic_store_n(words + at, word, __ATOMIC_RELEASE); }

    int descriptor = -1;
    std::uint64_t *words = nullptr;
};

// Waits for the answer. Returns the state then. If no ctrace listens any more, one may be on its way.
inline std::uint64_t wait_for(const shared_file &file, const volatile std::uint16_t &listeners) {
    const std::uint64_t patience = std::uint64_t{CTRACK_TABLES_WAIT_MS} * 1000000u, last_words = 500000000;
    const std::uint64_t begun = nanoseconds();
    std::uint64_t unheard = begun; // since when
    for (long pause = 200000;; pause = pause < 5000000 ? pause * 2 : pause) {
        const std::uint64_t now = nanoseconds(), state = file.get(state_at);
        if (state != asked && state != in_the_making) return state;
        if (listeners != 0) unheard = now;
        if (now - begun > (state == asked ? patience : 10 * patience) || now - unheard > last_words) return asked;
        const timespec shortly = {0, pause};
        nanosleep(&shortly, nullptr);
    }
}

// Reads the rows. What another process writes meanwhile can make them wrong, but nothing else.
inline std::vector<row> read_rows(const shared_file &file) {
    const std::size_t most = shared_file::bytes / 8 - first_row_at;
    const std::size_t size = file.get(bytes_at) / 8;
    std::vector<std::uint64_t> words(size < most ? size : most);
    for (std::size_t i = 0; i < words.size(); i++) words[i] = file.get(first_row_at + i);
    std::vector<row> rows;
    for (std::size_t at = 0; words.size() - at >= row_words;) {
        row next = {};
        std::memcpy(next.numbers, &words[at], sizeof next.numbers);
        const std::uint64_t length = next.numbers[row_bytes] / 8;
        if (length < row_words || length > words.size() - at) break;
        const std::uint64_t name = next.numbers[text_bytes] & 0xffffffffu, path = next.numbers[text_bytes] >> 32;
        if (name + path > (length - row_words) * 8) break;
        const char *text = reinterpret_cast<const char *>(words.data() + at + row_words);
        next.name.assign(text, name);
        next.file.assign(text + name, path);
        rows.push_back(next);
        at += length;
    }
    return rows;
}

// Asks, while ctrace listens to the point at `site`.
inline void ask_at(std::uintptr_t site, std::uintptr_t sp, unsigned center, answer &answer) {
    // Field 5 of the site leads from itself to the number of those who listen.
    const char *field = reinterpret_cast<const char *>(site) + 20;
    std::int32_t distance;
    std::memcpy(&distance, field, sizeof distance);
    const auto &listeners = *reinterpret_cast<const volatile std::uint16_t *>(field + distance);
    shared_file file;
    answer.what = reply::late;
    if (!file.words) return;
    file.put(magic_at, 0x0174656361727463u); // "ctracet" 1
    file.put(since_at, the_period.since);
    file.put(center_at, center);
    file.put(waited_at, the_period.waited);
    std::uint64_t cleared = the_period.cleared;
    const std::uint64_t ticks = the_period.cleared_ticks;
    const bool is_exact = cleared == the_period.cleared;
    const std::uint64_t age = cleared ? nanoseconds() - cleared + 1 : 0;
    file.put(age_at, age);
    file.put(state_at, asked);
    // The clock of scopes has 48 bits: the time of long ago would look like a later one.
    const bool is_recent = is_exact && age / 1000000000u < 3600;
    const std::uint64_t values[] = {static_cast<std::uint64_t>(file.descriptor), is_recent ? ticks : 0};
    const ctrace_c1_data data = {values, nullptr, 2, 0, 0};
    if (!ctrace_c1_slow_with(0, sp >> 4, ctrace_tag_(site, sp), &data)) return;
    const std::uint64_t begun = nanoseconds();
    switch (wait_for(file, listeners)) {
    case has_tables:
        answer.what = reply::tables;
        answer.start = file.get(start_at);
        answer.end = file.get(end_at);
        answer.tracked = file.get(tracked_at);
        answer.left_out = file.get(left_out_at);
        answer.rows = read_rows(file);
        the_period.since = answer.end;
        the_period.waited = nanoseconds() - begun;
        the_period.cleared.compare_exchange_strong(cleared, 0);
        break;
    case has_nothing: {
        const std::uint64_t why = file.get(rows_at);
        answer.what = why == 1 ? reply::too_often : why == 3 ? reply::too_much : reply::no_calls;
        break;
    }
    default:
        file.put(state_at, given_up);
        if (the_period.given_up >= 0) close(the_period.given_up);
        the_period.given_up = file.take();
    }
}

// Asks for the numbers since the last answer. `center`: the percentage of calls cut off each end for the center's.
__attribute__((__noinline__)) inline answer ask(unsigned center) {
    answer answer;
    answer.what = reply::late;
    std::unique_lock<std::mutex> one_at_a_time(the_period.asking, std::try_to_lock);
    if (!one_at_a_time.owns_lock()) return answer;
    answer.what = reply::nobody;
    (void)CTRACE_ENTER_BY_(12 | 4 << 8, "tables\0file:u64,cleared:u64", 0, CTRACE_NO_GROUP_,
                           (ask_at(ctrace_site_, ctrace_sp_, center, answer), 0));
    return answer;
}

// Calls that end from now on count.
inline void clear() {
    const std::uint8_t clock = __atomic_load_n(&ctrace_c1_clock, __ATOMIC_RELAXED);
    the_period.cleared_ticks = 0;
    the_period.cleared = nanoseconds();
    the_period.cleared_ticks = clock ? ctrace_now_(clock) : 0;
}

#else /* !CTRACK_ASKS_ */

inline answer ask(unsigned) { return {}; }
inline void clear() {}

#endif /* CTRACK_ASKS_ */

} // namespace ctrack_c1

#endif // CTRACK_TABLES_HPP
