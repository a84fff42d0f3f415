//! Prints the slowest call of each function of a recording: what the library gives is the calls
//! themselves, not a report of them.
//!
//! `cargo run --release -p ctrace-core --example read_recording -- trace.ctrace`

use ctrace_core::recording::{Call, RecordError, Recording};
use ctrace_core::report::render::clean::clean;
use ctrace_core::units::ThreadId;
use std::error::Error;
use std::fs::File;
use std::io::{Write, stdout};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("give the file to read, such as trace.ctrace")?;
    let recording = Recording::open(File::open(path)?)?;
    print(&recording, &mut stdout().lock())
}

/// Writes a line for each function that has a call of known duration.
pub(crate) fn print(recording: &Recording, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let (start, _) = recording.period();
    for (function, slowest) in recording.functions().iter().zip(slowest(recording)?) {
        let Some((thread, call)) = slowest else { continue };
        let thread = recording.thread(thread).map_or("?", |thread| &thread.name);
        let took = call.duration().0 as f64 / 1e6;
        let at = call.start().since(start).0 as f64 / 1e6;
        let (name, thread) = (clean(&function.name), clean(thread));
        writeln!(out, "{took:>12.6} ms  {name}, in {thread}, {at:.6} ms after the start")?;
    }
    Ok(())
}

/// By function: its slowest call, and the thread that made it.
fn slowest(recording: &Recording) -> Result<Vec<Option<(ThreadId, Call)>>, RecordError> {
    let mut slowest = vec![None; recording.functions().len()];
    for entry in recording.chunks() {
        let chunk = recording.chunk(entry)?;
        for thread in chunk.threads() {
            for call in chunk.calls(thread).iter().filter(|call| call.is_timed()) {
                let Some(path) = recording.path(call.path()) else { continue };
                let slowest: &mut Option<(ThreadId, Call)> = &mut slowest[path.function.index()];
                if slowest.is_none_or(|(_, other)| other.duration() < call.duration()) {
                    *slowest = Some((thread.thread, *call));
                }
            }
        }
    }
    Ok(slowest)
}
