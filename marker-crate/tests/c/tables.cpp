// Asks for CTRACK's tables, and plays ctrace's part: a thread answers in each wrong way that there is.
#define CTRACK_TABLES_WAIT_MS 20000
#include "ctrack.hpp"
#include <cstdlib>

using ctrack_c1::answer;
using ctrack_c1::reply;

// An entry of a point that is on: its fifth field leads to its listeners.
alignas(32) static unsigned char site[64];
static std::uint16_t &listeners = *reinterpret_cast<std::uint16_t *>(site + 32);

// Opens the file of the request.
static int find() {
    for (;;) {
        for (int file = 3; file < 64; file++) {
            const std::string path = "/proc/self/fd/" + std::to_string(file);
            char name[64] = "";
            if (readlink(path.c_str(), name, sizeof name - 1) <= 0 || !std::strstr(name, "memfd:ctrack tables"))
                continue;
            const int opened = open(path.c_str(), O_RDWR | O_CLOEXEC);
            std::uint64_t state[2] = {};
            // One that was given up stays open for a while.
            if (pread(opened, state, sizeof state, 0) == sizeof state && state[1] != 5) return opened;
            close(opened);
        }
    }
}

struct told {
    std::uint64_t words[64];
};

// Answers with these words, which go to word 8 and on, and with this state. Returns the request.
static told reply_with(const std::vector<std::uint64_t> &words, std::uint64_t state, answer &got) {
    told request = {};
    std::thread ctrace([&] {
        const int file = find();
        while (request.words[1] != 1)
            if (pread(file, &request, sizeof request, 0) != sizeof request) std::abort();
        if (ftruncate(file, 4096) == 0) std::abort(); // nobody can make it smaller
        const std::uint64_t begins = 4;
        if (pwrite(file, &begins, 8, 8) != 8) std::abort();
        if (!words.empty() && pwrite(file, words.data(), words.size() * 8, 64) < 0) std::abort();
        if (pwrite(file, &state, 8, 8) != 8) std::abort();
        close(file);
    });
    got = {};
    ctrack_c1::ask_at(reinterpret_cast<std::uintptr_t>(site), reinterpret_cast<std::uintptr_t>(&request), 5, got);
    ctrace.join();
    return request;
}

// The head of an answer, and a row whose name and path are `text` together.
static std::vector<std::uint64_t> answer_of(std::uint64_t bytes, std::uint64_t row_bytes, std::uint64_t texts) {
    std::vector<std::uint64_t> words(8 + 22);
    const std::uint64_t head[] = {1000, 5000, 300, 1, bytes};
    std::memcpy(words.data(), head, sizeof head);
    words[8] = row_bytes;
    for (std::size_t i = 9; i < words.size(); i++) words[i] = 100 + i;
    words[10] = texts;
    std::memcpy(&words[28], "a name/its path", 16);
    return words;
}

static void require(bool holds, const char *what) {
    if (holds) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::exit(1);
}

int main() {
    const std::int32_t distance = 32 - 20;
    std::memcpy(site + 20, &distance, sizeof distance);
    listeners = 1;
    answer got;
    const std::uint64_t texts = 6 | std::uint64_t{9} << 32;
    told request = reply_with(answer_of(176, 176, texts), 2, got);
    require(request.words[0] == 0x0174656361727463u && request.words[2] == 0 && request.words[4] == 5, "a request");
    require(got.what == reply::tables && got.start == 1000 && got.end == 5000 && got.tracked == 300, "an answer");
    require(got.rows.size() == 1 && got.rows[0].name == "a name" && got.rows[0].file == "/its path", "a row");
    require(got.rows[0].numbers[ctrack_c1::calls] == 111 && got.rows[0].numbers[ctrack_c1::slowest_max] == 127,
            "its numbers");
    request = reply_with({0, 0, 0, 1}, 3, got);
    require(request.words[2] == 5000 && request.words[3] == 0, "it goes on where the last one has ended");
    require(got.what == reply::too_often && got.rows.empty(), "too often");
    request = reply_with({0, 0, 0, 2}, 3, got);
    require(request.words[2] == 5000 && got.what == reply::no_calls, "nothing was lost");
    reply_with({0, 0, 0, 3}, 3, got);
    require(got.what == reply::too_much && got.rows.empty(), "too much");
    ctrack::clear_a_store();
    request = reply_with({}, 7, got);
    require(request.words[3] > 0 && got.what == reply::late, "an unknown state is no answer");

    struct {
        std::uint64_t bytes, row_bytes, texts;
    } wrong[] = {
        {0, 176, texts}, {159, 176, texts},      {176, 0, 0},       {176, 152, 0},
        {176, 184, 0},   {176, UINT64_MAX, 0},   {176, 176, 17},    {176, 176, 16 | std::uint64_t{1} << 32},
        {176, 168, texts}, {176, 176, UINT64_MAX},
    };
    for (const auto &one : wrong) {
        reply_with(answer_of(one.bytes, one.row_bytes, one.texts), 2, got);
        require(got.what == reply::tables && got.rows.empty(), "a row that cannot be");
    }
    reply_with(answer_of(UINT64_MAX, 176, texts), 2, got);
    require(got.rows.size() == 1, "one row, and zeros behind it to the end of the file");

    // A result made of it.
    ctrack::ctrack_result result{{5, 0.0, 0.0}, {}, {}};
    reply_with(answer_of(176, 176, texts), 2, got);
    result.take(got);
    const ctrack::ctrack_result_tables &tables = result.get_tables();
    const ctrack::detail_stats &row = tables.details.rows[0];
    require(tables.time_total.count() == 4000 && tables.time_ctracked.count() == 300, "times");
    require(row.calls == 111 && row.threads == 112 && row.line == 109 && row.function_name == "a name", "a row");
    require(row.time_ae_all.count() == 117 && row.percent_ae_all == 117.0 / 4000 * 100, "a percent");
    require(row.slowest_range == 95 && tables.summary.rows[0].percent_ae_bracket == 124.0 / 4000 * 100, "ranges");
    require(result.ctracked_uses == 1 && result.ctracked_files == 1, "counts");
    for (const std::uint64_t left_out : {0, 1, 7}) {
        std::vector<std::uint64_t> words = answer_of(176, 176, texts);
        words[5] = left_out;
        reply_with(words, 2, got);
        ctrack::ctrack_result some{{5, 0.0, 0.0}, {}, {}};
        some.take(got);
        std::ostringstream summary, details;
        some.get_summary_table(summary);
        some.get_detail_table(details);
        const std::string line = left_out == 1 ? "\nctrack: 1 row is left out, " : "\nctrack: 7 rows are left out, ";
        for (const std::string &shown : {summary.str(), details.str()})
            require((shown.find(line) != std::string::npos) == (left_out > 0), "rows that are left out are told");
        require(some.rows_left_out() == left_out, "and counted");
    }
    ctrack::ctrack_result none{{5, 3.0, 0.0}, {}, {}}, no_fastest{{5, 0.0, 100.0}, {}, {}};
    none.take(got);
    no_fastest.take(got);
    require(none.get_tables().details.rows.empty() && no_fastest.get_tables().summary.rows.empty(), "left out");

    // Nobody listens any more, so it does not wait for the whole time.
    listeners = 0;
    got = {};
    ctrack_c1::ask_at(reinterpret_cast<std::uintptr_t>(site), reinterpret_cast<std::uintptr_t>(&got), 5, got);
    require(got.what == reply::late, "nobody listens");
    return 0;
}
