//! A library with scopes in functions that others instantiate or inline.

pub use ctrace_marker;

pub fn generic<T: Copy>(value: T) -> T {
    let _scope = ctrace_marker::scope!("in the dylib's generic function");
    std::hint::black_box(value)
}

#[inline]
pub fn inlined(value: u64) -> u64 {
    let _scope = ctrace_marker::scope!("in the dylib's inlined function");
    std::hint::black_box(value)
}

pub fn plain(value: u64) -> u64 {
    let _scope = ctrace_marker::scope!("in the dylib");
    generic(value) + inlined(value)
}
