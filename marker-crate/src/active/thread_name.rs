//! The names of threads.

use super::{sys, texts::head};
use core::fmt;

/// The bytes of a name that count.
const LONGEST: usize = 15;

/// Names this thread, as tools and ctrace show it from now on. Of the name, 15 bytes count.
///
/// This is a system call, also while nobody traces. [`thread_name!`](macro@crate::thread_name) takes
/// arguments, too.
pub fn thread_name(name: &str) {
    thread_name_of(format_args!("{name}"));
}

/// Names this thread by a formatted text.
pub fn thread_name_of(name: fmt::Arguments<'_>) {
    let mut written = Name { bytes: [0; LONGEST + 1], length: 0 };
    // Formatting ends where the name is cut.
    let _ = fmt::Write::write_fmt(&mut written, name);
    sys::set_thread_name(&written.bytes);
}

/// A name of up to 15 bytes, and zero bytes behind it.
struct Name {
    bytes: [u8; LONGEST + 1],
    length: usize,
}

impl fmt::Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = head(text, LONGEST - self.length);
        self.bytes[self.length..][..fits.len()].copy_from_slice(fits.as_bytes());
        self.length += fits.len();
        if fits.len() < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}
