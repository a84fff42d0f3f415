// SPDX-License-Identifier: MIT OR Apache-2.0
//
// ctrack_compat.hpp: lets ctrace profile a program written for CTRACK (github.com/Compaile/ctrack, 1.1)
// from outside while it runs. The source stays unchanged. Compile it with
//
//     -I <here>/ctrack        instead of the folder of CTRACK's own ctrack.hpp
//
// (its ctrack.hpp includes this file), or include this file instead of ctrack.hpp.
// It needs neither TBB nor a library to link.
//
// The macros are CTRACK's, and so are the switches that compile them out: CTRACK_DISABLE,
// CTRACK_DISABLE_DEV, CTRACK_DISABLE_PROD. The scopes are in the groups `prod` and `dev`, which ctrace
// chooses from outside: `sudo ctrace attach <pid> -m 'prod/*'`. Cost, guarantees and limits: ctrace.h.
//
// The functions that return or print results exist, with CTRACK's types. But the program no longer
// has the numbers, and ctrace writes nothing to it. So tables have no rows, also while ctrace traces the
// program, and printed results are one line that says where the numbers are: `--view ctrack` shows the
// same tables. A program may index a table without looking at its size: a row that is not there reads as
// a row of zeros.
//
// Differences
//   - CTRACK_NAME(x) with an x that is known only at run time is a row for each name, as with CTRACK. Of a
//     name, 252 bytes count. Before there are calls (`ctrace list`), it is one scope: `x (any name)`. That
//     is also the row of calls that no name is known of: those beyond the first 4,096 names.
//   - A ctrack::EventHandler made without the macros measures nothing.
//   - CTRACK's internals (ctrack::store, its table printer) are missing. A ctrack::ctrack_result has the
//     public members of CTRACK's, without events.
#ifndef CTRACK_H
#define CTRACK_H

#include "ctrace.h"

// CTRACK's includes, which programs may rely on.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#if defined(__unix__)
#include <unistd.h>
#endif

#define CTRACK_VERSION_MAJOR 1
#define CTRACK_VERSION_MINOR 1
#define CTRACK_VERSION_PATCH 0

#ifndef STRINGIFY
#define STRINGIFY(x) #x
#endif
#ifndef TOSTRING
#define TOSTRING(x) STRINGIFY(x)
#endif
#define CTRACK_VERSION_STRING                                                                          \
    TOSTRING(CTRACK_VERSION_MAJOR) "_" TOSTRING(CTRACK_VERSION_MINOR) "_" TOSTRING(CTRACK_VERSION_PATCH)
// CTRACK pastes before it expands, so its namespace has the names of the macros in its name.
#define CTRACK_VERSION_NAMESPACE v##CTRACK_VERSION_MAJOR##_##CTRACK_VERSION_MINOR##_##CTRACK_VERSION_PATCH

namespace ctrack {
inline namespace CTRACK_VERSION_NAMESPACE {

// The rows of a table. One that is not there reads as zeros, where a vector would read any memory.
template <typename Row> class table_rows : public std::vector<Row> {
  public:
    using std::vector<Row>::vector;

    const Row &operator[](std::size_t index) const { return index < this->size() ? this->data()[index] : none(); }
    Row &operator[](std::size_t index) { return index < this->size() ? this->data()[index] : none(); }
    const Row &front() const { return (*this)[0]; }
    Row &front() { return (*this)[0]; }
    const Row &back() const { return (*this)[this->size() - 1]; }
    Row &back() { return (*this)[this->size() - 1]; }

  private:
    // Cleared each time, because the program may have written to it.
    static Row &none() {
        static thread_local Row row;
        return row = Row{};
    }
};

struct ctrack_result_settings {
    unsigned int non_center_percent = 1;
    double min_percent_active_exclusive = 0.0;
    double percent_exclude_fastest_active_exclusive = 0.0;
};

struct summary_row {
    std::string filename;
    std::string function_name;
    int line{};
    int calls{};
    double percent_ae_bracket{};
    double percent_ae_all{};
    std::chrono::nanoseconds time_ae_all{};
    std::chrono::nanoseconds time_a_all{};
};

struct summary_table {
    table_rows<summary_row> rows;
};

struct detail_stats {
    std::string filename;
    std::string function_name;
    int line{};
    std::chrono::nanoseconds time_acc{};
    std::chrono::nanoseconds sd{};
    double cv{};
    int calls{};
    int threads{};
    double percent_ae_bracket{};
    double percent_ae_all{};
    std::chrono::nanoseconds time_ae_all{};
    std::chrono::nanoseconds time_a_all{};
    std::chrono::nanoseconds fastest_min{};
    std::chrono::nanoseconds fastest_mean{};
    std::chrono::nanoseconds center_min{};
    std::chrono::nanoseconds center_mean{};
    std::chrono::nanoseconds center_med{};
    std::chrono::nanoseconds center_time_a{};
    std::chrono::nanoseconds center_time_ae{};
    std::chrono::nanoseconds center_max{};
    std::chrono::nanoseconds slowest_mean{};
    std::chrono::nanoseconds slowest_max{};
    unsigned int fastest_range{};
    unsigned int slowest_range{};
};

struct detail_table {
    table_rows<detail_stats> rows;
};

struct ctrack_result_tables {
    std::chrono::high_resolution_clock::time_point start_time;
    std::chrono::high_resolution_clock::time_point end_time;
    std::chrono::nanoseconds time_total{};
    std::chrono::nanoseconds time_ctracked{};
    summary_table summary;
    detail_table details;
    ctrack_result_settings settings;
};

// What CTRACK keeps of a call. Nothing makes one here.
struct Event {
    std::chrono::high_resolution_clock::time_point start_time;
    std::chrono::high_resolution_clock::time_point end_time;
    int line;
    int thread_id;
    std::string_view filename;
    std::string_view function;
    unsigned int event_id;
    Event(const std::chrono::high_resolution_clock::time_point &start_time_,
          const std::chrono::high_resolution_clock::time_point &end_time_, const std::string_view filename_,
          const int line_, const std::string_view function_, const int thread_id_, const unsigned int event_id_)
        : start_time(start_time_), end_time(end_time_), line(line_), thread_id(thread_id_),
          filename(filename_), function(function_), event_id(event_id_) {}
};

// What CTRACK keeps of a function. Nothing makes one here.
struct EventGroup {
    double all_cv = 0.0;
    double all_st = 0.0;
    unsigned int all_cnt = 0;
    uint_fast64_t all_time_acc = 0;
    uint_fast64_t all_time_active = 0;
    uint_fast64_t all_time_active_exclusive = 0;
    unsigned int all_thread_cnt = 0;
    std::vector<const Event *> all_events = {};
    unsigned int fastest_range = 0;
    uint_fast64_t fastest_min = 0;
    double fastest_mean = 0.0;
    unsigned int slowest_range = 0;
    uint_fast64_t slowest_max = 0;
    double slowest_mean = 0.0;
    uint_fast64_t center_min = 0;
    uint_fast64_t center_max = 0;
    uint_fast64_t center_med = 0;
    double center_mean = 0;
    uint_fast64_t center_time_active = 0;
    uint_fast64_t center_time_active_exclusive = 0;
    std::string filename = {};
    std::string function_name = {};
    int line = 0;
};

// Says where the numbers are.
inline std::string where_the_numbers_are() {
#if CTRACE_ENABLED && defined(__unix__)
    return "ctrack: the numbers are outside the program now: sudo ctrace attach " + std::to_string(getpid()) +
           " --view ctrack (while it runs; for a whole run: sudo ctrace run --view ctrack -- COMMAND)";
#else
    return "ctrack: this program was compiled without ctrace's markers";
#endif
}

class ctrack_result {
  public:
    ctrack_result(const ctrack_result_settings &settings_,
                  const std::chrono::high_resolution_clock::time_point &start,
                  const std::chrono::high_resolution_clock::time_point &end)
        : settings(settings_), track_start_time(start), track_end_time(end) {
        const std::string percent = std::to_string(settings.non_center_percent);
        center_intervall_str = "[" + percent + "-" + std::to_string(100 - settings.non_center_percent) + "]";
        tables.start_time = start;
        tables.end_time = end;
        tables.time_total = std::chrono::duration_cast<std::chrono::nanoseconds>(end - start);
        tables.settings = settings;
        time_total = static_cast<uint_fast64_t>(tables.time_total.count());
    }

    template <typename StreamType> void get_summary_table(StreamType &stream, bool use_color = false) {
        (void)use_color;
        stream << where_the_numbers_are() << "\n";
    }
    template <typename StreamType>
    void get_detail_table(StreamType &stream, bool use_color = false, bool reverse_vector = false) {
        (void)reverse_vector;
        get_summary_table(stream, use_color);
    }
    const ctrack_result_tables &get_tables() const { return tables; }

    ctrack_result_settings settings;
    std::chrono::high_resolution_clock::time_point track_start_time, track_end_time;
    uint_fast64_t time_total = 0;
    uint_fast64_t sum_time_active_exclusive = 0;
    uint_fast64_t ctracked_files = 0;
    uint_fast64_t ctracked_functions = 0;
    uint_fast64_t ctracked_uses = 0;
    std::vector<EventGroup *> sorted_events{};
    std::string center_intervall_str;
    ctrack_result_tables tables;
};

class EventHandler {
  public:
    explicit EventHandler(int = 0, const char * = nullptr, const char * = nullptr,
                          std::chrono::high_resolution_clock::time_point = {}) {}
    ~EventHandler() {} // not trivial, so that compilers do not warn of an unused variable
    EventHandler(const EventHandler &) = delete;
    EventHandler &operator=(const EventHandler &) = delete;
};

// The time of the program's start, or of the last request for results. Nothing else is kept.
inline std::atomic<std::chrono::high_resolution_clock::time_point> track_start_time{
    std::chrono::high_resolution_clock::now()};

inline void clear_a_store() { track_start_time = std::chrono::high_resolution_clock::now(); }

inline ctrack_result calc_stats_and_clear(ctrack_result_settings settings = {}) {
    auto now = std::chrono::high_resolution_clock::now();
    return ctrack_result{settings, track_start_time.exchange(now), now};
}

inline void result_print(ctrack_result_settings settings = {}) {
    calc_stats_and_clear(settings);
    std::cout << where_the_numbers_are() << std::endl;
}

inline std::string result_as_string(ctrack_result_settings settings = {}) {
    calc_stats_and_clear(settings);
    return where_the_numbers_are() + "\n";
}

inline ctrack_result_tables result_get_tables(ctrack_result_settings settings = {}) {
    return calc_stats_and_clear(settings).get_tables();
}

inline summary_table result_get_summary_table(ctrack_result_settings settings = {}) {
    return result_get_tables(settings).summary;
}

inline detail_table result_get_detail_table(ctrack_result_settings settings = {}) {
    return result_get_tables(settings).details;
}

// Returns whether the source text of a name begins as a literal does.
constexpr bool begins_as_literal(const char *text) {
    while (*text == '(' || *text == ' ') ++text;
    return *text == '"';
}

} // namespace CTRACK_VERSION_NAMESPACE
} // namespace ctrack

// A name that is no constant cannot be kept in the file: it comes with each call, which costs about a
// nanosecond for each byte. The file has its source text instead, with a mark. Without optimization,
// clang must see which of the two it is before it makes code.
#define CTRACK_ANY_(name) #name " (any name)"
#if defined(__clang__) && !defined(__OPTIMIZE__)
#define CTRACK_IS_LATE_(name) (!::ctrack::begins_as_literal(#name))
#else
#define CTRACK_IS_LATE_(name) (!__builtin_constant_p(name))
#endif
#define CTRACK_NAMED_IN_(group, name)                                                                  \
    CTRACE_LATE_IN_(CTRACE_DISABLE_##group)(CTRACE_UNIQUE_, CTRACK_IS_LATE_(name),                     \
                                            CTRACK_IS_LATE_(name) ? CTRACK_ANY_(name) : (name), #group, name)

// A function's scope has the name that CTRACK gives it. Of a template, gcc's has the arguments, and each
// instantiation is a row of its own.
#define CTRACK_FUNCTION_IN_(group) CTRACE_IN_(CTRACE_DISABLE_##group)(CTRACE_UNIQUE_, 1, __builtin_FUNCTION(), #group)

#if !defined(CTRACK_DISABLE)
#define CTRACK_CONCAT_IMPL(x, y) x##y
#define CTRACK_CONCAT(x, y) CTRACK_CONCAT_IMPL(x, y)
#define CTRACK_UNIQUE_NAME(prefix) CTRACK_CONCAT(prefix, __COUNTER__)
#define CTRACK_IMPL CTRACK_FUNCTION_IN_(prod)
#define CTRACK_IMPL_NAME(name) CTRACK_NAMED_IN_(prod, name)
#endif

#if !defined(CTRACK_DISABLE) && !defined(CTRACK_DISABLE_PROD)
#define CTRACK_PROD CTRACK_IMPL
#define CTRACK_PROD_NAME(name) CTRACK_NAMED_IN_(prod, name)
#else
#define CTRACK_PROD
#define CTRACK_PROD_NAME(name)
#endif

#if !defined(CTRACK_DISABLE) && !defined(CTRACK_DISABLE_DEV)
#define CTRACK_DEV CTRACK_FUNCTION_IN_(dev)
#define CTRACK_DEV_NAME(name) CTRACK_NAMED_IN_(dev, name)
#else
#define CTRACK_DEV
#define CTRACK_DEV_NAME(name)
#endif

#define CTRACK CTRACK_PROD
#define CTRACK_NAME(name) CTRACK_PROD_NAME(name)

#endif // CTRACK_H
