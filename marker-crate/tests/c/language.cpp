// Scopes with features of C++: exceptions, templates, lambdas, inline functions in two translation
// units. With language2.cpp.
#include "support.h"
#include "language.h"
#include <stdexcept>
#include <thread>
#include <vector>

static std::vector<std::string> calls() {
    std::vector<std::string> names;
    collect_all();
    check_nesting(0);
    for (int i = 0; i < event_count; i++)
        if (!events[i].exit) names.push_back(site_name(events[i].site));
    event_count = 0;
    ctrace_c1_empty(ctrace_c1_mine, 0);
    event_count = 0;
    return names;
}
static std::vector<std::string> names(std::initializer_list<std::string> list) { return list; }

struct Base {
    virtual ~Base() { CTRACE_FUNCTION; }
    virtual int method(int x) const noexcept {
        CTRACE_FUNCTION;
        return x;
    }
};
struct Derived : Base {
    Derived() { CTRACE_FUNCTION; }
    int method(int x) const noexcept override {
        CTRACE_FUNCTION;
        return Base::method(x);
    }
    int operator()(int x) const {
        CTRACE_FUNCTION;
        return x;
    }
};

static void thrower(bool really) {
    CTRACE_FUNCTION;
    if (really) throw std::runtime_error("out of here");
}
__attribute__((noinline)) static void catcher(int depth) {
    CTRACE_SCOPE("catcher");
    thrower(depth == 0);
    CTRACE_BEGIN(part, "part");
    if (depth > 0) catcher(depth - 1);
    CTRACE_END(part);
}

int main() {
    capture();
    switch_to(nullptr, 1);

    try {
        catcher(2);
        CHECK(false);
    } catch (const std::runtime_error &) {
        CTRACE_SCOPE("handler");
    }
    CHECK(calls() == names({"catcher", "thrower", "part", "catcher", "thrower", "part", "catcher", "thrower", "handler"}));

    CHECK(generic(1) + generic(2L) == 3 + 5);
    CHECK(calls() == names({"generic", "lambda", "generic", "lambda"}));

    CHECK(twice(3) == 6 && twice_elsewhere(3) == 6);
    CHECK(calls() == names({"twice", "twice"}));

    {
        Derived d;
        CHECK(d.method(1) == 1 && d(2) == 2);
    }
    CHECK(calls() == names({"Derived", "method", "method", "operator()", "~Base"}));

    auto lambda = [](auto x) {
        CTRACE_FUNCTION;
        return x;
    };
    CHECK(lambda(1) == 1);
    if constexpr (sizeof(int) == 4) {
        CTRACE_SCOPE_IN(dev, "constexpr if");
    }
    for (int i = 0; i < 2; i++) CTRACE_SCOPE("no braces");
    CHECK(calls() == names({"operator()", "constexpr if", "no braces", "no braces"}));

    std::thread([] { CTRACE_SCOPE("thread"); }).join();
    CHECK(event_count == 2 && strcmp(site_name(events[0].site), "thread") == 0);
    struct Late { // a thread's own destructors
        ~Late() { CTRACE_SCOPE("late"); }
    };
    event_count = 0;
    std::thread([] {
        thread_local Late late;
        (void)&late;
        CTRACE_SCOPE("thread");
    }).join();
    CHECK(event_count == 4);
    return 0;
}
