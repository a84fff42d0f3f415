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
// The functions that return or print results have CTRACK's types, and ask ctrace for the numbers: those of
// `--view ctrack`, since the last results. `ctrace run` and `ctrace attach` give them, unless they have
// --interval or --budget. The thread then waits some 0.2 s for them, and longer after millions of calls,
// within limits (ctrack_tables.hpp). Without such a ctrace nobody waits: tables have no rows, and what is
// printed is one line that says why. A program may index a table without looking at its size: a row that is
// not there reads as a row of zeros.
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
#include "ctrack_print.hpp"
#include "ctrack_tables.hpp"
#include "ctrack_types.hpp"

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

namespace ctrack {
inline namespace CTRACK_VERSION_NAMESPACE {

// Says why there are no numbers here.
inline std::string why_there_are_none(ctrack_c1::reply what) {
#if CTRACK_ASKS_
    const std::string from_outside =
        ". From outside: sudo ctrace attach " + std::to_string(getpid()) + " --view ctrack";
    switch (what) {
    case ctrack_c1::reply::late: return "ctrack: no numbers here: ctrace did not give them in time" + from_outside;
    case ctrack_c1::reply::too_often:
        return "ctrack: no numbers here: the program asks ctrace too often. The next results have them";
    case ctrack_c1::reply::no_calls:
        return "ctrack: no numbers here: ctrace does not have all calls. Its report says what it has";
    case ctrack_c1::reply::too_much:
        return "ctrack: no numbers here: ctrace has reached its limit for tables (256 MiB a process, 1 GiB a session)" + from_outside;
    default:
        return "ctrack: no numbers here, as no ctrace traces these scopes and gives the program its numbers: `run` "
               "and `attach` do, without --interval and --budget" + from_outside;
    }
#else
    (void)what;
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
        tables.settings = settings;
        set_times();
    }

    // Takes over the numbers that ctrace has given. They begin where ctrace began, if that was later.
    void take(const ctrack_c1::answer &answer) {
        what = answer.what;
        if (what != ctrack_c1::reply::tables) return;
        const std::chrono::nanoseconds covered{static_cast<std::int64_t>(answer.end - answer.start)};
        track_start_time =
            track_end_time - std::chrono::duration_cast<std::chrono::high_resolution_clock::duration>(covered);
        set_times();
        tables.time_ctracked = std::chrono::nanoseconds{static_cast<std::int64_t>(answer.tracked)};
        sum_time_active_exclusive = answer.tracked;
        missing = answer.left_out;
        std::set<std::string> files;
        std::set<std::pair<std::string, std::string>> functions;
        for (const ctrack_c1::row &row : answer.rows) {
            files.insert(row.file);
            functions.insert({row.file, row.name});
        }
        ctracked_files = files.size();
        ctracked_functions = functions.size();
        ctracked_uses = answer.rows.size();
        const double fastest = settings.percent_exclude_fastest_active_exclusive / 100;
        const auto left_out = static_cast<std::size_t>(static_cast<double>(answer.rows.size()) * fastest);
        const double least = static_cast<double>(time_total) * settings.min_percent_active_exclusive / 100;
        for (std::size_t i = 0; i + left_out < answer.rows.size(); i++) {
            const ctrack_c1::row &row = answer.rows[i];
            if (row.numbers[ctrack_c1::active_exclusive] >= static_cast<std::uint64_t>(least)) add(row);
        }
    }

    template <typename StreamType> void get_summary_table(StreamType &stream, bool use_color = false) {
        if (what != ctrack_c1::reply::tables) {
            stream << why_there_are_none(what) << "\n";
            return;
        }
        const ctrack_c1::colours *const palette = use_color ? &ctrack_c1::green : nullptr;
        ctrack_c1::text_table times({"Start", "End", "time total", "time ctracked", "time ctracked %"}, palette);
        times.add({ctrack_c1::text_of(tables.start_time), ctrack_c1::text_of(tables.end_time), ctrack_c1::text_of(tables.time_total),
                   ctrack_c1::text_of(tables.time_ctracked), ctrack_c1::text_of(percent_of(sum_time_active_exclusive), "%")});
        times.print(stream);
        ctrack_c1::text_table functions({"filename", "function", "line", "calls", "ae" + center_intervall_str + "%", "ae[0-100]%",
                              "time ae[0-100]", "time a[0-100]"}, palette);
        for (const summary_row &row : tables.summary.rows)
            functions.add({ctrack_c1::text_of_file(row.filename), row.function_name, std::to_string(row.line),
                           std::to_string(row.calls), ctrack_c1::text_of(row.percent_ae_bracket, "%"),
                           ctrack_c1::text_of(row.percent_ae_all, "%"), ctrack_c1::text_of(row.time_ae_all), ctrack_c1::text_of(row.time_a_all)});
        functions.print(stream);
        print_left_out(stream);
    }

    // As in CTRACK, the rows come in reverse order unless `reverse_vector` is true.
    template <typename StreamType>
    void get_detail_table(StreamType &stream, bool use_color = false, bool reverse_vector = false) {
        if (what != ctrack_c1::reply::tables) {
            stream << why_there_are_none(what) << "\n";
            return;
        }
        const std::size_t number = tables.details.rows.size();
        for (std::size_t i = 0; i < number; i++)
            print_details(stream, tables.details.rows[reverse_vector ? i : number - 1 - i], use_color);
        print_left_out(stream);
    }
    const ctrack_result_tables &get_tables() const { return tables; }

    // Returns whether there are numbers.
    bool has_tables() const { return what == ctrack_c1::reply::tables; }

    // Returns the number of rows that the tables lack, as there was no room for them.
    uint_fast64_t rows_left_out() const { return missing; }

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

  private:
    void set_times() {
        tables.start_time = track_start_time;
        tables.end_time = track_end_time;
        tables.time_total = std::chrono::duration_cast<std::chrono::nanoseconds>(track_end_time - track_start_time);
        time_total = static_cast<uint_fast64_t>(tables.time_total.count());
    }

    double percent_of(std::uint64_t time) const {
        return time_total > 0 ? static_cast<double>(time) / static_cast<double>(time_total) * 100.0 : 0.0;
    }

    void add(const ctrack_c1::row &told) {
        const auto ns = [&](ctrack_c1::number of) {
            return std::chrono::nanoseconds{static_cast<std::int64_t>(told.numbers[of])};
        };
        const auto count = [&](ctrack_c1::number of) { return static_cast<int>(told.numbers[of]); };
        detail_stats row;
        row.filename = told.file;
        row.function_name = told.name;
        row.line = count(ctrack_c1::line);
        row.time_acc = ns(ctrack_c1::time_acc);
        row.sd = ns(ctrack_c1::sd);
        std::memcpy(&row.cv, &told.numbers[ctrack_c1::cv], sizeof row.cv);
        row.calls = count(ctrack_c1::calls);
        row.threads = count(ctrack_c1::threads);
        row.percent_ae_bracket = percent_of(told.numbers[ctrack_c1::center_active_exclusive]);
        row.percent_ae_all = percent_of(told.numbers[ctrack_c1::active_exclusive]);
        row.time_ae_all = ns(ctrack_c1::active_exclusive);
        row.time_a_all = ns(ctrack_c1::active);
        row.fastest_min = ns(ctrack_c1::fastest_min);
        row.fastest_mean = ns(ctrack_c1::fastest_mean);
        row.center_min = ns(ctrack_c1::center_min);
        row.center_mean = ns(ctrack_c1::center_mean);
        row.center_med = ns(ctrack_c1::center_median);
        row.center_time_a = ns(ctrack_c1::center_active);
        row.center_time_ae = ns(ctrack_c1::center_active_exclusive);
        row.center_max = ns(ctrack_c1::center_max);
        row.slowest_mean = ns(ctrack_c1::slowest_mean);
        row.slowest_max = ns(ctrack_c1::slowest_max);
        row.fastest_range = settings.non_center_percent;
        row.slowest_range = 100 - settings.non_center_percent;
        tables.summary.rows.push_back({row.filename, row.function_name, row.line, row.calls, row.percent_ae_bracket,
                                       row.percent_ae_all, row.time_ae_all, row.time_a_all});
        tables.details.rows.push_back(std::move(row));
    }

    template <typename StreamType>
    void print_details(StreamType &stream, const detail_stats &row, bool use_color) const {
        const ctrack_c1::colours *const palette = use_color ? &ctrack_c1::blue : nullptr;
        std::ostringstream variation;
        variation << row.cv;
        ctrack_c1::text_table sums({"filename", "function", "line", "time acc", "sd", "cv", "calls", "threads"}, palette);
        sums.add({ctrack_c1::text_of_file(row.filename), row.function_name, std::to_string(row.line), ctrack_c1::text_of(row.time_acc),
                  ctrack_c1::text_of(row.sd), variation.str(), std::to_string(row.calls), std::to_string(row.threads)});
        sums.print(stream);
        ctrack_c1::text_table parts({"min", "mean", "min", "mean", "med", "time a", "time ae", "max", "mean", "max"}, palette,
                         {{"fastest[0-" + std::to_string(row.fastest_range) + "]%", 2},
                          {"center" + center_intervall_str + "%", 6},
                          {"slowest[" + std::to_string(row.slowest_range) + "-100]%", 2}});
        parts.add({ctrack_c1::text_of(row.fastest_min), ctrack_c1::text_of(row.fastest_mean), ctrack_c1::text_of(row.center_min),
                   ctrack_c1::text_of(row.center_mean), ctrack_c1::text_of(row.center_med), ctrack_c1::text_of(row.center_time_a),
                   ctrack_c1::text_of(row.center_time_ae), ctrack_c1::text_of(row.center_max), ctrack_c1::text_of(row.slowest_mean),
                   ctrack_c1::text_of(row.slowest_max)});
        parts.print(stream);
        stream << "\n";
    }

    template <typename StreamType> void print_left_out(StreamType &stream) const {
        if (missing == 0) return;
        stream << "ctrack: " << missing << (missing == 1 ? " row is" : " rows are")
               << " left out, those with the least time ae: there was no room for more\n";
    }

    ctrack_c1::reply what = ctrack_c1::reply::nobody;
    uint_fast64_t missing = 0;
};

class EventHandler {
  public:
    explicit EventHandler(int = 0, const char * = nullptr, const char * = nullptr,
                          std::chrono::high_resolution_clock::time_point = {}) {}
    ~EventHandler() {} // not trivial, so that compilers do not warn of an unused variable
    EventHandler(const EventHandler &) = delete;
    EventHandler &operator=(const EventHandler &) = delete;
};

// The time of the program's start, or of the last request for results.
inline std::atomic<std::chrono::high_resolution_clock::time_point> track_start_time{
    std::chrono::high_resolution_clock::now()};

inline void clear_a_store() {
    track_start_time = std::chrono::high_resolution_clock::now();
    ctrack_c1::clear();
}

inline ctrack_result calc_stats_and_clear(ctrack_result_settings settings = {}) {
    const auto now = std::chrono::high_resolution_clock::now();
    const ctrack_c1::answer answer = ctrack_c1::ask(settings.non_center_percent);
    ctrack_result result{settings, track_start_time.exchange(now), now};
    result.take(answer);
    return result;
}

inline void result_print(ctrack_result_settings settings = {}) {
    ctrack_result result = calc_stats_and_clear(settings);
    if (result.has_tables()) {
        std::cout << "Details" << std::endl;
        result.get_detail_table(std::cout, true);
        std::cout << "Summary" << std::endl;
    }
    result.get_summary_table(std::cout, true);
    std::cout << std::flush;
}

inline std::string result_as_string(ctrack_result_settings settings = {}) {
    ctrack_result result = calc_stats_and_clear(settings);
    std::ostringstream text;
    if (result.has_tables()) text << "Summary\n";
    result.get_summary_table(text, false);
    if (result.has_tables()) {
        text << "Details\n";
        result.get_detail_table(text, false, true);
    }
    return text.str();
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
