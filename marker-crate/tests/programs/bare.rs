//! A program with a USDT probe and nothing else of the crate.

fn main() {
    ctrace_marker::usdt!(bare, place, std::process::id());
}
