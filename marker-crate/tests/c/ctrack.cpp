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
#if defined(__OPTIMIZE__) || !defined(__clang__)
    CTRACK_NAME(at_run_time);
#endif
    for (int i = 0; i < 3; i++) {
        CTRACK_NAME("loop");
        x = function(x);
    }
    return x;
}

int main(int, char **arguments) {
    {
        CTRACK;
        several(1, arguments[0]);
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
    return summary.rows.size() + details.rows.size() + result.get_tables().summary.rows.size() == 0 &&
                   tables.settings.non_center_percent == 2 && tables.end_time >= tables.start_time &&
                   tables.time_total.count() >= 0
               ? 0
               : 1;
}
