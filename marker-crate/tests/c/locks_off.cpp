// Locks without markers are the mutexes that they wrap.
#include "ctrace.h"
#include <mutex>
#include <shared_mutex>

static ctrace::lockable<std::shared_mutex> table("table");
static ctrace::lockable<std::recursive_mutex> nested;

int main() {
    table.lock_shared();
    bool is_taken = !table.try_lock() && table.try_lock_shared();
    table.unlock_shared();
    table.unlock_shared();
    bool is_free = table.try_lock();
    table.unlock();
    std::lock_guard<decltype(nested)> one(nested), two(nested);
    return is_taken && is_free ? 0 : 1;
}
