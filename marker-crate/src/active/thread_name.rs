//! The names of threads.

use super::{sys, texts::head};

/// Names this thread, as tools and ctrace show it from now on. Of the name, 15 bytes count.
///
/// This is a system call, also while nobody traces.
pub fn thread_name(name: &str) {
    let name = head(name, 15).as_bytes();
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name);
    sys::set_thread_name(&bytes);
}
