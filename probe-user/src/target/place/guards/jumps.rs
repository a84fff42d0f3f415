//! Guards `longjmp` where it may lead to another stack.
//!
//! It mostly returns on the same stack, and needs no guard then. But programs that make stacks also
//! use it to change between them, because it is fast: OpenSSL's jobs, QEMU's coroutines, GNU Pth.
//! So its stubs in such an object are guarded, and not `longjmp` itself: other objects pay nothing.

use crate::target::place::code::CodeMap;
use crate::target::place::cost::cost;
use iced_x86::{Decoder, DecoderOptions};

/// A stub and its first instruction's place in the file; or why it carries no probe.
pub(crate) type Stub = Result<u64, &'static str>;

/// Returns the linker's stubs through which the object calls this import.
pub(crate) fn stubs<'a>(map: &'a CodeMap<'_>, import: &'a str) -> impl Iterator<Item = Stub> + 'a {
    /// The smallest stubs are aligned so.
    const STEP: usize = 8;
    let starts = map.stubs().flat_map(|stubs| stubs.step_by(STEP));
    let stubs = starts.filter(move |start| {
        let behind = map.import_behind(*start);
        behind.is_some_and(|name| crate::target::place::deny::bare(name) == import)
    });
    stubs.map(|start| {
        let bytes = map.bytes(start).ok_or("it is not in the file")?;
        let first = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).decode();
        cost(bytes, &first)?;
        map.file_offset(start).ok_or("it is not in the file")
    })
}
