// SPDX-License-Identifier: MIT OR Apache-2.0
//
// ctrack_print.hpp: draws tables in the manner of CTRACK. ctrack_compat.hpp includes it; nobody else needs it.
#ifndef CTRACK_PRINT_HPP
#define CTRACK_PRINT_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

namespace ctrack_c1 {

// Escape sequences of a terminal. CTRACK's colours of a summary and of details.
struct colours {
    const char *border;
    const char *heading;
    const char *title;
    const char *row;
};
inline constexpr colours green{"\033[38;5;28m", "\033[1;38;5;208m", "\033[1;38;5;130m", "\033[38;5;71m"};
inline constexpr colours blue{"\033[38;5;24m", "\033[1;38;5;135m", "\033[1;38;5;92m", "\033[38;5;39m"};

// Returns the number of characters of a UTF-8 text.
inline std::size_t width_of(const std::string &text) {
    std::size_t width = 0;
    for (char c : text) width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    return width;
}

// A table with a heading, and perhaps with titles above it that span some columns each.
class text_table {
  public:
    using titles = std::vector<std::pair<std::string, std::size_t>>;

    text_table(std::vector<std::string> heading, const colours *palette, titles above = {})
        : colour(palette), spanning(std::move(above)) {
        add(std::move(heading));
    }

    void add(std::vector<std::string> row) {
        widths.resize(row.size() > widths.size() ? row.size() : widths.size());
        for (std::size_t i = 0; i < row.size(); i++)
            if (width_of(row[i]) > widths[i]) widths[i] = width_of(row[i]);
        rows.push_back(std::move(row));
    }

    template <typename Stream> void print(Stream &stream) const {
        if (!spanning.empty()) {
            line(stream);
            print_titles(stream);
        }
        line(stream);
        for (std::size_t i = 0; i < rows.size(); i++) {
            print_row(stream, rows[i], i == 0);
            line(stream);
        }
    }

  private:
    static std::string spaces(std::size_t number) { return std::string(number, ' '); }
    const char *in(const char *colours::*of) const { return colour ? colour->*of : ""; }
    const char *end() const { return colour ? "\033[0m" : ""; }

    template <typename Stream> void line(Stream &stream) const {
        stream << in(&colours::border) << "+";
        for (std::size_t width : widths) stream << std::string(width + 2, '-') << "+";
        stream << end() << "\n";
    }

    template <typename Stream> void bar(Stream &stream) const {
        stream << in(&colours::border) << "|" << end();
    }

    template <typename Stream>
    void centered(Stream &stream, const std::string &text, std::size_t room, const char *colours::*of) const {
        const std::size_t width = width_of(text), left = room > width ? (room - width) / 2 : 0;
        stream << in(of) << spaces(left) << text << spaces(room > width ? room - width - left : 0) << end();
    }

    template <typename Stream> void print_titles(Stream &stream) const {
        std::size_t column = 0;
        bar(stream);
        for (const auto &title : spanning) {
            std::size_t room = title.second - 1;
            for (std::size_t i = 0; i < title.second; i++) room += widths[column++] + 2;
            centered(stream, title.first, room, &colours::title);
            bar(stream);
        }
        stream << "\n";
    }

    template <typename Stream>
    void print_row(Stream &stream, const std::vector<std::string> &row, bool is_heading) const {
        bar(stream);
        for (std::size_t i = 0; i < row.size(); i++) {
            if (is_heading)
                centered(stream, row[i], widths[i] + 2, &colours::heading);
            else
                stream << in(&colours::row) << spaces(widths[i] - width_of(row[i]) + 1) << row[i] << " " << end();
            bar(stream);
        }
        stream << "\n";
    }

    const colours *colour;
    titles spanning;
    std::vector<std::size_t> widths;
    std::vector<std::vector<std::string>> rows;
};

inline std::string text_of(double number, const char *unit) {
    char text[400];
    std::snprintf(text, sizeof text, "%.2f%s", number, unit);
    return text;
}

inline std::string text_of(std::chrono::nanoseconds time) {
    static const char *const units[] = {" ns", " mcs", " ms", " s"};
    double value = static_cast<double>(time.count());
    int unit = 0;
    for (; value >= 1000 && unit < 3; unit++) value /= 1000;
    return text_of(value, units[unit]);
}

// A time of day, of any clock.
template <typename Clock> std::string text_of(const std::chrono::time_point<Clock> &time) {
    const auto ago = std::chrono::duration_cast<std::chrono::system_clock::duration>(Clock::now() - time);
    const std::time_t seconds = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - ago);
    char text[32] = "";
    std::tm parts = {};
#if defined(_WIN32)
    const bool is_known = localtime_s(&parts, &seconds) == 0;
#else
    const bool is_known = localtime_r(&seconds, &parts) != nullptr;
#endif
    if (is_known) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
    return text;
}

// Returns the name of a file, without its folders, and at most 35 bytes of it.
inline std::string text_of_file(const std::string &path) {
    const std::string name = path.substr(path.find_last_of('/') + 1);
    return name.size() <= 35 ? name : name.substr(0, 32) + "...";
}

} // namespace ctrack_c1

#endif // CTRACK_PRINT_HPP
