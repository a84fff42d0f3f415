/* Functions whose parameters and members are of many kinds. Each call prints a line
 * `call {"function":…,"values":{…}}` with what the program itself knows of it, in the form of an
 * exported call. Usage: named_values [ROUNDS=20] */
#include "count.h"
#include <string>
#include <string_view>

struct Place { int x, y; };
struct Mixed { double ratio; long count; };
struct Base { unsigned char level; };
struct Request : Base {
    int length;
    std::string method;
    const char *path;
    Place at;
    double weight;
    char tag[8];
};

enum class Kind : short { cold = -300, warm, hot = 400 };
enum State { IDLE, BUSY = 5, STUCK = 0x7fffffff };
struct Job { char id; State state; };

static const char *name(Kind kind) {
    return kind == Kind::cold ? "\"cold\"" : kind == Kind::warm ? "\"warm\"" : kind == Kind::hot ? "\"hot\"" : nullptr;
}

static const char *name(State state) {
    return state == IDLE ? "\"IDLE\"" : state == BUSY ? "\"BUSY\"" : state == STUCK ? "\"STUCK\"" : nullptr;
}

/* Some numbers have no name. */
FN State grade(Kind kind, Job *job) {
    job->id++;
    return kind == Kind::cold ? STUCK : job->state == BUSY ? IDLE : BUSY;
}

struct Letter { int stamps; std::string_view to; };

/* The texts are parts of longer ones. */
FN long post(std::string_view from, const Letter *letter, const std::string_view &seal, std::string *paper, int times) {
    for (char c : from) times += c;
    return (long)(from.size() + letter->to.size() + seal.size() + paper->size()) + times;
}

FN std::string_view cut(std::string_view text, Place to) { return text.substr(0, to.x + to.y % 2); }
FN std::string joined(const std::string &text, int times) { return times % 2 ? text : text + " and " + text; }
FN const std::string &longer(const std::string &one, const std::string &other) { return one.size() > other.size() ? one : other; }

struct Parcel { long id; std::string title; const char *label; char mark[6]; double mass; };
struct Basket { int size; Parcel *first; };

/* Some baskets are empty. */
FN long ship(Basket *basket, int after) {
    basket->size++;
    return after + (basket->first ? basket->first->id : -1);
}

struct Shop {
    long total;
    FN long sell(const Request &request, Place place, Mixed mixed, std::string by, unsigned char n, float f, short last);
};

FN long Shop::sell(const Request &request, Place place, Mixed mixed, std::string by, unsigned char n, float f, short last) {
    total += request.length + place.y + (long)mixed.ratio + (long)by.size() + n + (long)f + last;
    return total;
}

FN const char *pick(int which) { return which % 2 ? "odd" : "even"; }

FN bool many(long a, long b, long c, long d, long e, long f, Place *on_stack, signed char small, double far, unsigned last) {
    return a + b + c + d + e + f + on_stack->x + small + (long)far + last > 60;
}

int main(int argc, char **argv) {
    long rounds = number(argc, argv, 1, 20);
    Shop shop = {5};
    for (int i = 0; i < rounds; i++) {
        Request request;
        request.level = i;
        request.length = -i;
        request.method = i % 2 ? "GET" : "a method that is longer than what lies in the string itself";
        request.path = "/path";
        request.at = {i, i * 1000};
        request.weight = i * 0.25;
        snprintf(request.tag, sizeof request.tag, "t%d", i);
        long before = shop.total;
        /* A zero byte ends no string. */
        std::string by = i % 3 ? std::string("me") : std::string("an\0other", 8);
        long after = shop.sell(request, {i, 2 * i}, {i * 0.5, i}, by, i, i, -i);
        printf("call {\"function\":\"Shop::sell\",\"values\":{\"total\":%ld,\"level\":%u,\"length\":%d,\"method\":\"%s\","
               "\"path\":\"/path\",\"y\":%d,\"weight\":%g,\"tag\":\"%s\",\"by\":\"%s\",\"n\":%d,\"last\":%d,\"retval\":%ld}}\n",
               before, (unsigned char)i, -i, request.method.c_str(), i * 1000, request.weight, request.tag,
               i % 3 ? "me" : "an\\u0000other", (unsigned char)i, (short)-i, after);
        printf("call {\"function\":\"pick\",\"values\":{\"which\":%d,\"retval\":\"%s\"}}\n", i, pick(i));
        Kind kind = i % 4 == 3 ? Kind(17) : i % 4 == 2 ? Kind::hot : i % 4 ? Kind::warm : Kind::cold;
        Job job = {0, i % 3 ? BUSY : STUCK};
        const char *state = name(job.state), *result = name(grade(kind, &job));
        printf("call {\"function\":\"grade\",\"values\":{\"kind\":%s,\"state\":%s,\"retval\":%s}}\n",
               name(kind) ? name(kind) : "17", state, result);
        static char all[] = "a text that is longer than what a value shows of it, by some ten words or so";
        std::string_view from(all + i % 7, i % 11 ? i % 40 : sizeof all - 8), seal(all + 2, i % 3);
        Letter letter = {i, {all, (size_t)(i % 65)}};
        std::string paper = i % 2 ? "thin" : "thick";
        long posted = post(from, &letter, seal, &paper, i);
        auto shown = [](std::string_view text) {
            return std::string(text.substr(0, 64)) + (text.size() >= 64 ? "\\u2026" : "");
        };
        printf("call {\"function\":\"post\",\"values\":{\"from\":\"%s\",\"to\":\"%s\",\"seal\":\"%s\","
               "\"paper\":\"%s\",\"times\":%d,\"retval\":%ld}}\n",
               shown(from).c_str(), shown(letter.to).c_str(), shown(seal).c_str(), paper.c_str(), i, posted);
        printf("call {\"function\":\"cut\",\"values\":{\"text\":\"%s\",\"to\":%d,\"less\":%d,\"retval\":\"%s\"}}\n", shown(seal).c_str(),
               i + 1, -i, shown(cut(seal, {i + 1, -i})).c_str());
        printf("call {\"function\":\"joined\",\"values\":{\"times\":%d,\"retval\":\"%s\"}}\n", i, joined(paper, i).c_str());
        printf("call {\"function\":\"longer\",\"values\":{\"retval\":\"%s\"}}\n", shown(longer(paper, request.method)).c_str());
        Parcel parcel = {1000L + i, request.method + "!", paper.c_str(), {}, i * 0.75};
        snprintf(parcel.mark, sizeof parcel.mark, "m%d", i);
        Basket basket = {i, i % 5 ? &parcel : nullptr};
        long shipped = ship(&basket, i);
        if (basket.first)
            printf("call {\"function\":\"ship\",\"values\":{\"size\":%d,\"id\":%ld,\"title\":\"%s\",\"label\":\"%s\","
                   "\"mark\":\"%s\",\"mass\":%g,\"retval\":%ld}}\n",
                   i, parcel.id, parcel.title.c_str(), parcel.label, parcel.mark, parcel.mass, shipped);
        else
            printf("call {\"function\":\"ship\",\"values\":{\"size\":%d,\"id\":null,\"title\":null,\"label\":null,"
                   "\"mark\":null,\"mass\":null,\"retval\":%ld}}\n", i, shipped);
        Place place = {i, 7};
        bool is_more = many(1, 2, 3, 4, 5, i, &place, -i, i * 0.5, i);
        printf("call {\"function\":\"many\",\"values\":{\"f\":%d,\"small\":%d,\"last\":%d,\"retval\":%s}}\n", i,
               (signed char)-i, i, is_more ? "true" : "false");
    }
}
