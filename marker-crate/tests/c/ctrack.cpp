// A program as written for CTRACK: all of its public interface.
#include "ctrack.hpp"

int function(int x) {
    CTRACK;
    return x;
}
int several(int x, const char *at_run_time) {
    CTRACK_PROD;
    CTRACK_DEV;
    CTRACK_NAME("named");
    CTRACK_PROD_NAME("prod named");
    CTRACK_DEV_NAME("dev named");
    (void)at_run_time;
    CTRACK_NAME(at_run_time);
    CTRACK_DEV_NAME(("in parentheses"));
    for (int i = 0; i < 3; i++) {
        CTRACK_NAME("loop");
        x = function(x);
    }
    return x;
}

// As CTRACK's own tests do: the name is known where it is called.
template <size_t N> int template_of(int x, const char (&name)[N]) {
    (void)name;
    CTRACK_NAME(name);
    CTRACK;
    return x;
}

// Where a table has no such row, it reads as zeros, whatever was written to it.
static bool reads_zeros(ctrack::ctrack_result_tables tables) {
    const std::vector<ctrack::summary_row> &as_vector = tables.summary.rows;
    const auto &constant = tables;
    tables.summary.rows[3].calls = 7;
    tables.details.rows.front().line = 8;
    return as_vector.empty() && tables.summary.rows[3].calls == 0 && tables.details.rows.back().line == 0 &&
           constant.details.rows[0].center_mean.count() == 0 && constant.summary.rows[9].function_name.empty();
}

static bool holds_rows() {
    ctrack::summary_table table;
    table.rows.resize(2);
    table.rows[1].calls = 5;
    return table.rows.back().calls == 5 && table.rows.front().calls == 0 && table.rows[2].calls == 0;
}

// What is public of CTRACK beside its macros and results.
static bool has_the_rest() {
#ifndef CTRACK_DISABLE
    [[maybe_unused]] int CTRACK_UNIQUE_NAME(unique) = 1, CTRACK_UNIQUE_NAME(unique) = 2;
#endif
    auto now = std::chrono::high_resolution_clock::now();
    ctrack::Event event{now, now, "file", 3, "function", 4, 5};
    auto result = ctrack::calc_stats_and_clear();
    ctrack::CTRACK_VERSION_NAMESPACE::ctrack_result_settings settings;
    for (const ctrack::EventGroup *group : result.sorted_events) std::cout << group->all_cnt;
    return std::string(CTRACK_VERSION_STRING) == "1_1_0" && std::string(TOSTRING(CTRACK_VERSION_MINOR)) == "1" &&
           event.thread_id == 4 && result.sorted_events.empty() && settings.non_center_percent == 1 &&
           result.time_total == static_cast<uint_fast64_t>(result.get_tables().time_total.count()) &&
           result.center_intervall_str == "[1-99]";
}

int main(int, char **arguments) {
    {
        CTRACK;
        several(1, arguments[0]);
        template_of(1, "one");
        template_of(2, "two");
        template_of(3, "three");
    }
    ctrack::result_print();
    ctrack::ctrack_result_settings settings;
    settings.non_center_percent = 2;
    settings.min_percent_active_exclusive = 1.0;
    settings.percent_exclude_fastest_active_exclusive = 0.0;
    ctrack::result_print(settings);
    std::cout << ctrack::result_as_string() << ctrack::result_as_string({5, 0.5, 10.0});
    ctrack::ctrack_result_tables tables = ctrack::result_get_tables(settings);
    ctrack::summary_table summary = ctrack::result_get_summary_table();
    ctrack::detail_table details = ctrack::result_get_detail_table();
    for (const ctrack::summary_row &row : tables.summary.rows) std::cout << row.function_name;
    for (const ctrack::detail_stats &row : tables.details.rows) std::cout << row.center_mean.count();
    auto result = ctrack::calc_stats_and_clear();
    result.get_summary_table(std::cout, true);
    result.get_detail_table(std::cout, false, true);
    ctrack::clear_a_store();
    if (!reads_zeros(tables) || !holds_rows() || !has_the_rest()) return 2;
    return summary.rows.size() + details.rows.size() + result.get_tables().summary.rows.size() == 0 &&
                   tables.settings.non_center_percent == 2 && tables.end_time >= tables.start_time &&
                   tables.time_total.count() >= 0
               ? 0
               : 1;
}
