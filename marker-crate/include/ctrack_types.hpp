// SPDX-License-Identifier: MIT OR Apache-2.0
//
// ctrack_types.hpp: the types of CTRACK's results. ctrack_compat.hpp includes it; nobody else needs it.
#ifndef CTRACK_TYPES_HPP
#define CTRACK_TYPES_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

} // namespace CTRACK_VERSION_NAMESPACE
} // namespace ctrack

#endif // CTRACK_TYPES_HPP
