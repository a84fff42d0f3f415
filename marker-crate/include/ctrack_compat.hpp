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
// has the numbers: tables are empty, and printed results are one line that says where the numbers are.
//
// Differences
//   - CTRACK_NAME(x) with a non-constant x is named by its source text; clang refuses it at -O0.
//   - A ctrack::EventHandler made without the macros measures nothing.
//   - CTRACK's internals (ctrack::store, its table printer) are missing.
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

namespace ctrack {

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
    std::vector<summary_row> rows;
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
    std::vector<detail_stats> rows;
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

// Says where the numbers are.
inline std::string where_the_numbers_are() {
#if CTRACE_ENABLED && defined(__unix__)
    return "ctrack: the numbers are outside the program now: sudo ctrace attach " + std::to_string(getpid());
#else
    return "ctrack: this program was compiled without ctrace's markers";
#endif
}

class ctrack_result {
  public:
    ctrack_result(const ctrack_result_settings &settings,
                  const std::chrono::high_resolution_clock::time_point &track_start_time,
                  const std::chrono::high_resolution_clock::time_point &track_end_time) {
        tables.start_time = track_start_time;
        tables.end_time = track_end_time;
        tables.time_total = std::chrono::duration_cast<std::chrono::nanoseconds>(track_end_time - track_start_time);
        tables.settings = settings;
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

} // namespace ctrack

// A name that is no constant cannot be kept in the file. Its source text is kept instead.
#define CTRACK_LABEL_(name) (__builtin_constant_p(name) ? (name) : #name)

#if !defined(CTRACK_DISABLE) && !defined(CTRACK_DISABLE_PROD)
#define CTRACK_PROD CTRACE_FUNCTION_IN(prod)
#define CTRACK_PROD_NAME(name) CTRACE_SCOPE_IN(prod, CTRACK_LABEL_(name))
#else
#define CTRACK_PROD
#define CTRACK_PROD_NAME(name)
#endif

#if !defined(CTRACK_DISABLE) && !defined(CTRACK_DISABLE_DEV)
#define CTRACK_DEV CTRACE_FUNCTION_IN(dev)
#define CTRACK_DEV_NAME(name) CTRACE_SCOPE_IN(dev, CTRACK_LABEL_(name))
#else
#define CTRACK_DEV
#define CTRACK_DEV_NAME(name)
#endif

#define CTRACK CTRACK_PROD
#define CTRACK_NAME(name) CTRACK_PROD_NAME(name)

#endif // CTRACK_H
