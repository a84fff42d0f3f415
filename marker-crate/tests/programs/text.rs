//! A program that gives a scope a text, which the compiler refuses.

use ctrace_marker::scope;

fn main() {
    let name = std::env::args().next().unwrap_or_default();
    let _scope = scope!("stage", which = name.clone());
}
