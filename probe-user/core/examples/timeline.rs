//! Prints how fast the timeline of a recording is made, what it takes, and how long pictures take
//! over a sweep of random zooms.
//!
//! `cargo run --release -p ctrace-core --example timeline [MILLION CALLS | FILE]`

#[path = "../benches/trace/mod.rs"]
mod trace;

use ctrace_core::recording::Recording;
use ctrace_core::stop::Stop;
use ctrace_core::timeline::{RowKey, Timeline, View};
use ctrace_core::units::Nanos;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

const PICTURES: usize = 1_000;
const PIXELS: u32 = 1_920;
/// The shortest time across a picture.
const SHORTEST: f64 = 1_000.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let asked = std::env::args().nth(1);
    match asked.as_deref().map(str::parse::<f64>) {
        Some(Err(_)) => sweep(Recording::open(std::fs::File::open(asked.unwrap_or_default())?)?),
        millions => {
            let calls = millions.and_then(Result::ok).unwrap_or(20.0) * 1e6;
            let path = std::env::temp_dir().join(format!("timeline-{}.ctrace", std::process::id()));
            std::fs::write(&path, trace::Trace::new(calls as usize).record())?;
            let file = std::fs::File::open(&path)?;
            std::fs::remove_file(&path)?;
            sweep(Recording::open(file)?)
        }
    }
}

fn sweep(recording: Recording) -> Result<(), Box<dyn std::error::Error>> {
    let calls: u64 = recording.chunks().iter().map(|chunk| chunk.calls).sum();
    let begin = Instant::now();
    let timeline = Timeline::build(&recording, &AtomicU64::new(0))?;
    let seconds = begin.elapsed().as_secs_f64();
    let (tiles, single) = timeline.memory();
    println!(
        "built: {:.1} M calls in {seconds:.2} s, {:.1} M calls/s, {:.3} bytes of tiles a call, {:.3} of \
         single calls",
        calls as f64 / 1e6,
        calls as f64 / seconds / 1e6,
        tiles as f64 / calls as f64,
        single as f64 / calls as f64,
    );
    let of_thread = |(id, facts): (&_, &ctrace_core::timeline::ThreadFacts)| {
        let thread = *id;
        (0..facts.depths).map(move |depth| RowKey { thread, depth })
    };
    let rows: Vec<RowKey> = timeline.threads().iter().flat_map(of_thread).take(60).collect();
    let (start, end) = recording.period();
    let whole = end.since(start).0 as f64;
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as f64 / (1_u64 << 53) as f64
    };
    let (mut firsts, mut times): (Vec<f64>, Vec<f64>) = Default::default();
    let (mut cells, mut spans, mut coarse) = (0, 0, 0);
    for _ in 0..PICTURES {
        let length = SHORTEST * (whole / SHORTEST).max(1.0).powf(next());
        let from = start.0 + ((whole - length).max(0.0) * next()) as u64;
        let view = View::new(rows.clone(), Nanos(from)..Nanos(from + length as u64 + 1), PIXELS);
        // As the page asks: for what is there at once, and for the rest if that was coarser.
        let begin = Instant::now();
        let quick = timeline.quick(&view);
        let draw = |view| timeline.picture(&recording, view, &Stop::default());
        let mut picture = draw(&quick).expect("nobody stops it");
        firsts.push(begin.elapsed().as_secs_f64() * 1e3);
        if quick != view {
            coarse += 1;
            picture = draw(&view).expect("nobody stops it");
        }
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        cells += picture.rows.iter().map(|row| row.cells.len()).sum::<usize>();
        spans += picture.rows.iter().map(|row| row.spans.len()).sum::<usize>();
    }
    println!("first pictures: {}; {coarse} of {PICTURES} are coarse", told(&mut firsts));
    println!(
        "pictures: {}; {} rows, {} cells and {} calls each",
        told(&mut times),
        rows.len(),
        cells / PICTURES,
        spans / PICTURES,
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("VmRSS")) {
        println!("resident: {}", line.trim_start_matches("VmRSS:").trim());
    }
    Ok(())
}

fn told(times: &mut [f64]) -> String {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let [p50, p90, p99, most] = [0.5, 0.9, 0.99, 1.0].map(at);
    format!("p50 {p50:.2} ms, p90 {p90:.2} ms, p99 {p99:.2} ms, longest {most:.2} ms")
}
