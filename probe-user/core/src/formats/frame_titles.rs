//! The titles of a flame graph's frames: a time that can be read, the share, and the number of calls.
//!
//! inferno knows one number for each stack, and writes it as it is. So the titles in its drawing are
//! replaced. A frame is found again by its place: its depth, and the time at which it begins.

use crate::report::render::human::{Digits, count, time};
use crate::units::Nanos;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

/// Calls by depth and beginning of a frame.
pub(super) type CallsAt = HashMap<(usize, u64), u64>;

/// Adds up the calls of frames, stack by stack in the order in which they are drawn.
pub(super) struct Titles {
    /// True if stacks begin with their innermost frames. Then a stack's calls are calls of its first
    /// frame, on behalf of each one after it. Otherwise they are calls of its last frame.
    reversed: bool,
    /// The frames of the last stack: name, beginning and calls.
    open: Vec<(String, u64, u64)>,
    at: u64,
    calls: CallsAt,
}

impl Titles {
    pub(super) fn new(reversed: bool) -> Self {
        Self { reversed, open: Vec::new(), at: 0, calls: CallsAt::new() }
    }

    pub(super) fn add(&mut self, frames: &[String], width: u64, calls: u64) {
        let alike = self.open.iter().zip(frames).take_while(|((name, ..), frame)| name == *frame);
        let alike = alike.count();
        self.close(alike);
        self.open.extend(frames[alike..].iter().map(|frame| (frame.clone(), self.at, 0)));
        let counted = if self.reversed { 0 } else { frames.len().saturating_sub(1) };
        for (_, _, sum) in &mut self.open[counted..] {
            *sum = u64::saturating_add(*sum, calls);
        }
        self.at = self.at.saturating_add(width);
    }

    /// Keeps the calls of frames at `depth` and deeper. Those without a width are not drawn.
    fn close(&mut self, depth: usize) {
        for (depth, (_, from, calls)) in
            self.open.drain(depth..).enumerate().map(|(i, f)| (i + depth, f))
        {
            if from < self.at {
                self.calls.insert((depth, from), calls);
            }
        }
    }

    pub(super) fn finish(mut self) -> CallsAt {
        self.close(0);
        self.calls
    }
}

/// Writes the drawing with the new titles.
pub(super) fn retitle(
    drawing: &str,
    calls: &CallsAt,
    downwards: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let (head, frames) = drawing.split_once(TITLE).unwrap_or((drawing, ""));
    out.write_all(head.as_bytes())?;
    let frames = || frames.split(TITLE).filter(|frame| !frame.is_empty());
    let rows: BTreeSet<u64> = frames().filter_map(|frame| attribute(frame, "y")).collect();
    let depth = |y: u64| match downwards {
        true => rows.range(..y).count(),
        false => rows.range(y..).count() - 1,
    };
    let depths: HashMap<u64, usize> = rows.iter().map(|&y| (y, depth(y))).collect();
    for frame in frames() {
        out.write_all(TITLE.as_bytes())?;
        let (title, rest) = frame.split_once('<').unwrap_or((frame, ""));
        let place = attribute(frame, "y").and_then(|y| depths.get(&y));
        let span = attribute(frame, "fg:x").zip(attribute(frame, "fg:w"));
        let (Some(depth), Some((from, width)), Some((name, share))) = (
            place,
            span,
            title.rsplit_once(" (").and_then(|(name, of)| Some((name, of.split_once(" ns, ")?.1))),
        ) else {
            out.write_all(frame.as_bytes())?;
            continue;
        };
        let share = share.trim_end_matches(')');
        // The root has no calls, and is not among the frames of stacks.
        let calls = depth.checked_sub(1).and_then(|depth| calls.get(&(depth, from)));
        let calls = calls.map_or_else(String::new, |&calls| {
            format!(", {} call{}", count(calls), if calls == 1 { "" } else { "s" })
        });
        write!(out, "{name} ({}, {share}{calls})<{rest}", time(Nanos(width), Digits::Full))?;
    }
    Ok(())
}

const TITLE: &str = "<title>";

/// Returns the number of an attribute of the rectangle behind a title.
fn attribute(frame: &str, name: &str) -> Option<u64> {
    let rectangle = frame.split_once("<rect ")?.1.split_once('>')?.0;
    let value = rectangle.split_once(&format!("{name}=\""))?.1.split_once('"')?.0;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(reversed: bool, stacks: &[(&str, u64, u64)]) -> Vec<((usize, u64), u64)> {
        let mut titles = Titles::new(reversed);
        for (frames, width, calls) in stacks {
            let frames: Vec<String> = frames.split(';').map(str::to_owned).collect();
            titles.add(&frames, *width, *calls);
        }
        let mut all: Vec<_> = titles.finish().into_iter().collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn a_frame_has_the_calls_of_its_path() {
        let stacks = [("a", 0, 2), ("a;b", 30, 7), ("a;b;c", 0, 5), ("a;d", 5, 1), ("e", 9, 4)];
        let expected = [((0, 0), 2), ((0, 35), 4), ((1, 0), 7), ((1, 30), 1)];
        assert_eq!(calls(false, &stacks), expected);
    }

    #[test]
    fn reversed_a_frame_has_the_calls_on_its_behalf() {
        let stacks = [("b;a", 30, 7), ("b;c;a", 5, 1), ("c", 2, 3)];
        let expected = [((0, 0), 8), ((0, 35), 3), ((1, 0), 7), ((1, 30), 1), ((2, 30), 1)];
        assert_eq!(calls(true, &stacks), expected);
    }

    #[test]
    fn a_drawing_without_frames_stays() {
        let mut out = Vec::new();
        retitle("<svg><text>all (3 ns, 100%)</text></svg>", &CallsAt::new(), false, &mut out)
            .expect("memory takes all");
        assert_eq!(out, b"<svg><text>all (3 ns, 100%)</text></svg>");
    }
}
