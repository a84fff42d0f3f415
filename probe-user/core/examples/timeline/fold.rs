//! Tracy's search for what to draw, written again: zones narrower than three pixels are folded by repeated
//! binary searches, and what is inside a fold is not looked at. Each thread is a task of its own.

use crate::calls;
use crate::zones::{self, Thread, Zone};
use ctrace_core::recording::Recording;
use rayon::prelude::*;
use std::error::Error;
use std::time::Instant;

const PIXELS: u64 = 1_920;
/// Pixels of the narrowest zone that is drawn by itself.
const NARROW: u64 = 3;

/// The times on the screen, and the shortest zone that is drawn by itself.
struct View {
    from: u64,
    to: u64,
    narrow: u64,
}

/// A zone, or several folded ones, as Tracy hands them to what draws.
struct Draw {
    _depth: u16,
    _end: u64,
    _count: u32,
}

impl View {
    fn draw(&self, thread: &Thread, zones: &[Zone], depth: u16, drawn: &mut Vec<Draw>) {
        let first = zones.partition_point(|zone| zone.end() < self.from);
        let last = first + zones[first..].partition_point(|zone| zone.start() < self.to);
        let mut place = first;
        while place < last {
            let zone = &zones[place];
            let end = zone.end();
            if end - zone.start() >= self.narrow {
                if let Some(inside) = zone.inside() {
                    self.draw(thread, &thread.inside[inside], depth + 1, drawn);
                }
                drawn.push(Draw { _depth: depth, _end: end, _count: 1 });
                place += 1;
                continue;
            }
            let mut until = end + self.narrow;
            let mut next = place + 1;
            loop {
                next += zones[next..last].partition_point(|zone| zone.end() < until);
                if next == last {
                    break;
                }
                let before = zones[next - 1].end();
                let after = zones[next].end();
                if after - before >= self.narrow {
                    break;
                }
                until = after + self.narrow;
            }
            let count = (next - place) as u32;
            drawn.push(Draw { _depth: depth, _end: zones[next - 1].end(), _count: count });
            place = next;
        }
    }
}

/// Prints how long the search takes for each view: a line with its times since the start of the recording.
pub(crate) fn sweep(recording: &Recording, views: &str) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let threads = zones::of(recording)?;
    let seconds = begin.elapsed().as_secs_f64();
    let start = recording.period().0.0;
    let (mut times, mut all) = (Vec::new(), 0);
    for line in views.lines() {
        let (from, to) = line.split_once(' ').ok_or("a view has two times")?;
        let (from, to) = (start + from.parse::<u64>()?, start + to.parse::<u64>()?);
        let narrow = ((to - from) * NARROW / PIXELS).max(1);
        let view = View { from, to, narrow };
        let begin = Instant::now();
        let drawn: Vec<Vec<Draw>> = threads
            .par_iter()
            .map(|thread| {
                let mut drawn = Vec::new();
                view.draw(thread, &thread.outermost, 0, &mut drawn);
                drawn
            })
            .collect();
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        all += drawn.iter().map(Vec::len).sum::<usize>();
    }
    let lists: usize = threads.iter().map(|thread| thread.inside.len()).sum();
    let bytes = calls(recording) as usize * size_of::<Zone>() + lists * size_of::<Box<[Zone]>>();
    println!("zones: {seconds:.1} s to make, {} MiB", bytes >> 20);
    println!("drawn: {} zones or folds a view", all / times.len().max(1));
    let times: Vec<String> = times.iter().map(|time| format!("{time:.3}")).collect();
    println!("times: {} ms", times.join(" "));
    Ok(())
}
