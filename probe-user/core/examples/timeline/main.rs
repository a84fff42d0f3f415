//! Makes large recordings for the benchmark of the timeline, and measures what of it no server tells.
//!
//! - `cargo run --release -p ctrace-core --example timeline make FILE CALLS` makes a recording.
//! - `… tiles FILE` prints what the pyramid of a recording takes.
//! - `… fold FILE VIEWS` prints how long Tracy's search takes for the times that each line of a file has.

#[path = "../../benches/trace/mod.rs"]
mod trace;

mod fold;
mod make;
mod zones;

use ctrace_core::recording::Recording;
use ctrace_core::timeline::Timeline;
use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["make", file, calls] => make::recording(Path::new(file), calls.parse()?),
        ["tiles", file] => tiles(&open(file)?),
        ["fold", file, views] => fold::sweep(&open(file)?, &std::fs::read_to_string(views)?),
        _ => Err("make FILE CALLS, tiles FILE, or fold FILE VIEWS".into()),
    }
}

fn open(file: &str) -> Result<Recording, Box<dyn Error>> {
    Ok(Recording::open(File::open(file)?)?)
}

fn calls(recording: &Recording) -> u64 {
    recording.chunks().iter().map(|chunk| chunk.calls).sum()
}

fn tiles(recording: &Recording) -> Result<(), Box<dyn Error>> {
    let calls = calls(recording) as f64;
    let begin = Instant::now();
    let timeline = Timeline::build(recording, &AtomicU64::new(0))?;
    let seconds = begin.elapsed().as_secs_f64();
    let (tiles, single) = timeline.memory();
    println!(
        "built: {:.1} M calls in {seconds:.2} s, {:.1} M calls/s, {:.3} bytes of tiles a call, {:.3} of \
         single calls",
        calls / 1e6,
        calls / seconds / 1e6,
        tiles as f64 / calls,
        single as f64 / calls,
    );
    Ok(())
}
