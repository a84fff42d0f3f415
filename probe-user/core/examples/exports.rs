//! Prints how fast a recording is exported to each format, on one core, and how large it becomes.
//!
//! `cargo run --release -p ctrace-core --example exports [MILLION CALLS] [FILE TO KEEP THE RECORDING IN]`

#[path = "../benches/trace/mod.rs"]
mod trace;

use ctrace_core::formats::{Export, Format, Options};
use ctrace_core::recording::Recording;
use ctrace_core::recording::replay::Query;
use std::io::{self, Write};
use std::time::Instant;

/// Takes everything and keeps nothing.
#[derive(Default)]
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let millions = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(10.0);
    let bytes = trace::Trace::new((millions * 1e6) as usize).record();
    if let Some(file) = std::env::args().nth(2) {
        std::fs::write(file, &bytes)?;
    }
    let size = bytes.len();
    let recording = Recording::open(bytes)?;
    let calls: u64 = recording.chunks().iter().map(|chunk| chunk.calls).sum();
    println!("recording: {calls} calls, {:.2} bytes a call", size as f64 / calls as f64);
    for format in Format::ALL {
        let (query, options) = (&Query::default(), Options::default());
        let export = Export { recording: &recording, query, options, progress: &|_| {} };
        let (mut out, begin) = (Counted::default(), Instant::now());
        format.write(&export, &mut out)?;
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{}: {:.0} MB/s, {:.2} M calls/s, {:.2} bytes a call",
            format.name,
            out.0 as f64 / seconds / 1e6,
            calls as f64 / seconds / 1e6,
            out.0 as f64 / calls as f64,
        );
    }
    Ok(())
}
