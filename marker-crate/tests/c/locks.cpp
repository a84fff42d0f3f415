// Locks in C++: each tells of its waits and holds, and those that are off do nothing but lock.
#include "reads.h"
#include <mutex>
#include <thread>
#if __cplusplus >= 201703L
#include <shared_mutex>
static ctrace::lockable<std::shared_mutex> table("a table with a name of more than sixty-three bytes, which is cut äö");
#endif

// A type whose name says nothing.
struct reentrant : std::recursive_mutex {};
template <> struct ctrace::is_recursive<reentrant> {
    static bool value() { return true; }
};
static ctrace::lockable<reentrant> also_nested;

static ctrace::lockable<std::mutex> pool("pool");
static ctrace::lockable<std::recursive_mutex> nested(nullptr);

// In locks_other.cpp.
int lock_quietly();

static int count(const char *name) {
    int found = 0;
    for (int i = 0; i < read_count; i++) found += strcmp(site_name(reads[i].site), name) == 0;
    return found;
}
static void finish() {
    ctrace_c1_empty(ctrace_c1_mine, 0);
}
static void forget() {
    finish();
    read_count = 0;
}
template <class M> static uint64_t address(const ctrace::lockable<M> &lock) {
    return (uint64_t)(uintptr_t)&lock;
}
// Checks that all entries of this name are about one lock. Returns their number.
template <class M> static int count_of(const char *name, const ctrace::lockable<M> &lock) {
    for (int i = 0; i < read_count; i++)
        if (strcmp(site_name(reads[i].site), name) == 0)
            CHECK(reads[i].count == 1 && reads[i].values[0] == address(lock));
    return count(name);
}

// Waits until another thread has begun to wait for a lock.
static void until_somebody_waits(const char *name) {
    for (;;)
        for (struct ctrace_c1_buffer *buffer = __atomic_load_n(&ctrace_c1_list, __ATOMIC_ACQUIRE); buffer; buffer = buffer->next)
            for (int i = 0; i < 252; i++) {
                uint64_t tag = __atomic_load_n(&buffer->slots[i][1], __ATOMIC_ACQUIRE);
                const struct site *site = (const struct site *)(uintptr_t)(tag & 0x7fffffffffe0u);
                if (tag && !(tag >> 2 & 7) && strcmp(site_name(site), name) == 0) return;
            }
}

static void check_sites() {
    for (const struct site *site = __start_ctrace_sites; site < __stop_ctrace_sites; site++) {
        const char *name = site_name(site), *list = name + strlen(name) + 1;
        bool waits = strstr(name, " wait") != nullptr;
        CHECK(site->flags == (waits ? 8 : 12) && site->shape == 0);
        CHECK(strcmp((const char *)follow(&site->group), "locks") == 0);
        CHECK(strcmp(list, strcmp(name, "lock name") ? "lock:u64" : "lock:u64,name:str") == 0);
    }
}

static void check_alone() {
    for (int i = 0; i < 100; i++) std::lock_guard<ctrace::lockable<std::mutex>> held(pool);
    CHECK(ctrace_c1_list == nullptr);
    CHECK(switch_to(nullptr, 1) > 0);
    for (int i = 0; i < 100; i++) std::lock_guard<ctrace::lockable<std::mutex>> held(pool);
    CHECK(pool.try_lock());
    pool.unlock();
    CHECK(lock_quietly());
    finish();
    CHECK(count_of("mutex lock", pool) == 101 && count_of("mutex unlock", pool) == 101);
    CHECK(count("mutex wait") == 0 && count("mutex refused") == 0);
    // Now and then, beginning with the first acquisition.
    CHECK(count("lock name") == 2 && strcmp(entry("lock name", 0)->text, "pool") == 0);
    CHECK(strcmp(site_name(reads[0].site), "mutex lock") == 0 && strcmp(site_name(reads[1].site), "lock name") == 0);
    CHECK(reads[1].values[0] == address(pool));
    forget();
    // One without a name tells none. A recursive mutex is taken once more.
    nested.lock();
    nested.lock();
    nested.unlock();
    nested.unlock();
    finish();
    CHECK(count_of("recursive mutex lock", nested) == 2 && count("mutex lock") == 0);
    CHECK(count_of("mutex unlock", nested) == 2 && count("lock name") == 0);
    forget();
    also_nested.lock();
    also_nested.unlock();
    finish();
    CHECK(count_of("recursive mutex lock", also_nested) == 1 && count("mutex lock") == 0);
    forget();
}

static void check_wait() {
    pool.lock();
    std::thread waiter([] {
        CHECK(!pool.try_lock());
        pool.lock();
        pool.unlock();
    });
    until_somebody_waits("mutex wait");
    pool.unlock();
    waiter.join();
    finish();
    CHECK(count_of("mutex wait", pool) == 1 && count_of("mutex lock", pool) == 1);
    CHECK(count_of("mutex unlock", pool) == 2 && count_of("mutex refused", pool) == 1);
    CHECK(count("lock name") >= 1);
    forget();
}

static void check_shared() {
#if __cplusplus >= 201703L
    table.lock_shared();
    CHECK(table.try_lock_shared() && !table.try_lock());
    std::thread waiter([] { std::unique_lock<decltype(table)> held(table); });
    until_somebody_waits("rwlock write wait");
    table.unlock_shared();
    table.unlock_shared();
    waiter.join();
    table.lock();
    std::thread reader([] { std::shared_lock<decltype(table)> held(table); });
    until_somebody_waits("rwlock read wait");
    table.unlock();
    reader.join();
    finish();
    CHECK(count_of("rwlock read lock", table) == 2 && count_of("rwlock write lock", table) == 1);
    CHECK(count_of("rwlock read wait", table) == 1 && count_of("rwlock write wait", table) == 1);
    CHECK(count_of("rwlock unlock", table) == 5 && count_of("rwlock refused", table) == 1);
    CHECK(strcmp(entry("lock name", 0)->text, "a table with a name of more than sixty-three bytes, which is\xe2\x80\xa6") == 0);
    forget();
#endif
}

int main() {
    start_reading();
    check_sites();
    check_alone();
    check_wait();
    check_shared();
    // Off again.
    CHECK(switch_to(nullptr, 0) > 0);
    pool.lock();
    pool.unlock();
    finish();
    CHECK(read_count == 0 && strcmp(pool.name(), "pool") == 0 && *nested.name() == 0);
    return 0;
}
