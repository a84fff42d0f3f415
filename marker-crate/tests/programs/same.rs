//! Functions that must compile to the same code with disabled markers and without markers.
#![no_std]

#[cfg(marked)]
use ctrace_marker::{frame, message, plot, scope, usdt, usdt_enabled};
#[cfg(not(marked))]
macro_rules! scope {
    ($($tokens:tt)*) => {
        None::<()>
    };
}
#[cfg(not(marked))]
macro_rules! usdt {
    ($($tokens:tt)*) => {};
}
#[cfg(not(marked))]
macro_rules! message {
    ($($tokens:tt)*) => {};
}
#[cfg(not(marked))]
macro_rules! plot {
    ($($tokens:tt)*) => {};
}
#[cfg(not(marked))]
macro_rules! frame {
    () => {};
}
#[cfg(not(marked))]
macro_rules! usdt_enabled {
    ($($tokens:tt)*) => {
        false
    };
}

unsafe extern "C" {
    safe fn work(a: u64, b: u64) -> u64;
}

#[unsafe(no_mangle)]
pub fn calls(a: u64, b: u64, c: u64, d: u64) -> u64 {
    let _scope = scope!("calls", group = "prod");
    let inner = scope!();
    let sum = work(a, b);
    #[cfg(marked)]
    inner.end();
    #[cfg(not(marked))]
    drop(inner);
    let _valued = scope!("valued", sum = work(b, b), a = a);
    message!(level = Warn, "sum {} {sum}", work(b, a));
    plot!("sum", work(c, a));
    frame!();
    usdt!(same, calls, sum, work(a, a));
    if usdt_enabled!(same, calls) { 0 } else { sum + work(c, d) }
}

#[unsafe(no_mangle)]
pub fn leaf(a: u64, b: u64) -> u64 {
    let _scope = scope!("leaf");
    a * b + a
}

#[cfg_attr(attribute, ctrace_marker::mark(name = "twice", group = "prod"))]
#[unsafe(no_mangle)]
pub fn marked(a: u64) -> u64 {
    a * 2
}

pub struct Numbers(u64);

#[cfg_attr(attribute, ctrace_marker::mark)]
impl Numbers {
    #[unsafe(no_mangle)]
    pub fn sum(&self, a: u64) -> u64 {
        self.0 + a
    }

    #[cfg_attr(attribute, ctrace_marker::mark(skip))]
    #[unsafe(no_mangle)]
    pub fn product(&self, a: u64) -> u64 {
        self.0 * a
    }
}
