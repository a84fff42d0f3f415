//! A library that uses another version of the crate than its user does.

pub fn other(n: u64) -> u64 {
    let _scope = ctrace_marker::scope!("other version");
    ctrace_marker::usdt!(check, place, n);
    std::hint::black_box(n)
}
