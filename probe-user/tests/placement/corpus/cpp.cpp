// Exceptions through frames, virtual calls, destructors, templates.
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

struct Guard {
    const char *name;
    NOINLINE explicit Guard(const char *name) : name(name) {}
    NOINLINE ~Guard() { std::printf("~%s ", name); }
};
struct Shape {
    virtual ~Shape() = default;
    virtual int area() const = 0;
    virtual int twice() const { return area() * 2; }
};
struct Square : Shape {
    int side;
    explicit Square(int side) : side(side) {}
    NOINLINE int area() const override { return side * side; }
};
struct Other : virtual Shape {
    NOINLINE int area() const override { return 3; }
    NOINLINE int twice() const override { return area() + area(); }
};

NOINLINE int h_throws(int n) {
    Guard guard("throws");
    if (n == 0) throw std::runtime_error("zero");
    if (n == 1) throw 17;
    return n;
}
NOINLINE int h_passes(int n) {
    Guard guard("passes");
    std::string text(static_cast<size_t>(n) + 20, 'p');
    return h_throws(n) + static_cast<int>(text.size());
}
NOINLINE int h_catches(int n) {
    try {
        return h_passes(n);
    } catch (const std::exception &error) {
        std::printf("caught %s ", error.what());
        return -1;
    } catch (int code) {
        return code;
    }
}
NOINLINE int h_rethrows(int n) {
    try {
        return h_passes(n);
    } catch (...) {
        Guard guard("rethrows");
        throw;
    }
}
NOINLINE int h_deep(int n) { return n == 0 ? h_throws(0) : h_deep(n - 1) + 1; }
NOINLINE int h_noexcept(int n) noexcept { return h_catches(n); }
NOINLINE int h_shape(const Shape &shape) { return shape.twice(); }

int main() {
    for (int i = 0; i < 4; i++) std::printf("%d\n", h_catches(i));
    for (int i = 0; i < 3; i++) {
        try { std::printf("%d\n", h_rethrows(i)); } catch (...) { std::printf("outer\n"); }
    }
    try { h_deep(60); } catch (const std::runtime_error &error) { std::printf("deep %s\n", error.what()); }
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.push_back(std::make_unique<Square>(4));
    shapes.push_back(std::make_unique<Other>());
    for (const auto &shape : shapes) std::printf("%d ", h_shape(*shape));
    std::map<std::string, int> words;
    for (int i = 0; i < 100; i++) words["w" + std::to_string(i % 7)] += i;
    for (const auto &[word, count] : words) std::printf("%s=%d ", word.c_str(), count);
    std::printf("%d\n", h_noexcept(1));
    return 3;
}
