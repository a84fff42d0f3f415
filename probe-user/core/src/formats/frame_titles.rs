//! The titles of a flame graph's frames: a time that can be read, the share, and the number of calls. And
//! the colours of frames that have their own.
//!
//! inferno knows one number for each stack, writes it as it is, and chooses colours by names. So the titles
//! and these colours in its drawing are replaced. A frame is found again by its place: its depth, and the time at which it begins.

use crate::colour::Colour;
use crate::report::render::human::{Digits, count, time};
use crate::units::Nanos;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};

/// The calls of frames, and where the frames are drawn.
#[derive(Default)]
pub(super) struct Titles {
    /// The tree of frames: a frame's number by that of the one before it, 0 for the first, and by
    /// its name.
    frames: HashMap<(usize, String), usize>,
    /// The calls of each frame, by its number less 1.
    calls: Vec<u64>,
    /// The colour of each frame, likewise.
    colours: Vec<Option<Colour>>,
    /// The colours of functions, by the names of their frames.
    own: HashMap<String, Colour>,
    /// The frame at a depth and a beginning.
    places: HashMap<(usize, u64), usize>,
    /// The frames of the last stack that was drawn, and where they begin.
    open: Vec<(usize, u64)>,
    at: u64,
}

impl Titles {
    /// Makes the titles of a drawing in which functions with these names have these colours.
    pub(super) fn with_colours(own: HashMap<String, Colour>) -> Self {
        Self { own, ..Self::default() }
    }

    /// Adds the calls of a stack. In a reversed graph, they are calls of its first frame, on behalf
    /// of each one after it. Otherwise they are calls of its last frame.
    pub(super) fn count(&mut self, stack: &str, calls: u64, reversed: bool) {
        let frames = self.numbers(stack);
        let counted = if reversed { 0 } else { frames.len().saturating_sub(1) };
        for frame in &frames[counted..] {
            let sum = &mut self.calls[frame - 1];
            *sum = sum.saturating_add(calls);
        }
    }

    /// Draws a stack of this width behind the last one.
    pub(super) fn place(&mut self, stack: &str, width: u64) {
        let frames = self.numbers(stack);
        let alike = self.open.iter().zip(&frames).take_while(|((open, _), frame)| open == *frame);
        self.open.truncate(alike.count());
        self.open.extend(frames[self.open.len()..].iter().map(|&frame| (frame, self.at)));
        if width > 0 {
            // Others began there too, but without a width.
            let drawn = self.open.iter().enumerate().filter(|(_, (_, from))| *from == self.at);
            self.places.extend(drawn.map(|(depth, &(frame, from))| ((depth, from), frame)));
        }
        self.at = self.at.saturating_add(width);
    }

    fn numbers(&mut self, stack: &str) -> Vec<usize> {
        let mut last = 0;
        let numbers = stack.split(';').map(|frame| {
            let next = self.calls.len() + 1;
            last = *self.frames.entry((last, frame.to_owned())).or_insert(next);
            if last == next {
                self.calls.push(0);
                self.colours.push(self.own.get(frame).copied());
            }
            last
        });
        numbers.collect()
    }

    /// Returns the calls and the colour of the frame that is drawn there.
    fn at(&self, depth: usize, from: u64) -> Option<(u64, Option<Colour>)> {
        let frame = self.places.get(&(depth, from))? - 1;
        Some((self.calls[frame], self.colours[frame]))
    }
}

/// Writes the drawing with the new titles.
pub(super) fn retitle(
    drawing: &str,
    titles: &Titles,
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
        let of = depth.checked_sub(1).and_then(|depth| titles.at(depth, from));
        let calls = of.map_or_else(String::new, |(calls, _)| {
            format!(", {} call{}", count(calls), if calls == 1 { "" } else { "s" })
        });
        let rest = of.and_then(|(_, own)| recoloured(rest, own?)).unwrap_or_else(|| rest.into());
        write!(out, "{name} ({}, {share}{calls})<{rest}", time(Nanos(width), Digits::Full))?;
    }
    Ok(())
}

const TITLE: &str = "<title>";

/// Returns the drawing of a frame in its own colour.
fn recoloured(frame: &str, own: Colour) -> Option<String> {
    let (before, rectangle) = frame.split_once("<rect ")?;
    let (before_fill, rest) = rectangle.split_once("fill=\"")?;
    let (_, behind_fill) = rest.split_once('"')?;
    Some(format!("{before}<rect {before_fill}fill=\"{own}\"{behind_fill}"))
}

/// Returns the number of an attribute of the rectangle behind a title.
fn attribute(frame: &str, name: &str) -> Option<u64> {
    let rectangle = frame.split_once("<rect ")?.1.split_once('>')?.0;
    let value = rectangle.split_once(&format!("{name}=\""))?.1.split_once('"')?.0;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the calls by depth and beginning of each frame that is drawn.
    fn calls(reversed: bool, stacks: &[(&str, u64, u64)]) -> Vec<((usize, u64), u64)> {
        let mut titles = Titles::default();
        stacks.iter().for_each(|(frames, _, calls)| titles.count(frames, *calls, reversed));
        let drawn = stacks.iter().filter(|(_, width, _)| *width > 0);
        drawn.for_each(|(frames, width, _)| titles.place(frames, *width));
        let places: BTreeSet<_> = titles.places.keys().copied().collect();
        places.into_iter().map(|at| (at, titles.at(at.0, at.1).expect("a place").0)).collect()
    }

    #[test]
    fn a_frame_has_the_calls_of_its_path() {
        let stacks = [("a", 0, 2), ("a;b", 30, 7), ("a;b;c", 0, 5), ("a;d", 5, 1), ("e", 9, 4)];
        let expected = [((0, 0), 2), ((0, 35), 4), ((1, 0), 7), ((1, 30), 1)];
        assert_eq!(calls(false, &stacks), expected);
    }

    /// Lines are sorted by text, where a blank comes before the semicolon.
    #[test]
    fn a_frame_that_is_drawn_twice_has_all_calls_of_its_path() {
        let stacks = [("a", 3, 9), ("a b;c", 10, 2), ("a;d", 5, 1)];
        let expected = [((0, 0), 9), ((0, 3), 0), ((0, 13), 9), ((1, 3), 2), ((1, 13), 1)];
        assert_eq!(calls(false, &stacks), expected);
    }

    #[test]
    fn reversed_a_frame_has_the_calls_on_its_behalf() {
        let stacks = [("b;a", 30, 7), ("b;c;a", 5, 1), ("c", 2, 3)];
        let expected = [((0, 0), 8), ((0, 35), 3), ((1, 0), 7), ((1, 30), 1), ((2, 30), 1)];
        assert_eq!(calls(true, &stacks), expected);
    }

    #[test]
    fn a_frame_has_the_colour_of_its_function() {
        let own = Colour::from_rgb(0x33_aa_ff).expect("a colour");
        let mut titles = Titles::with_colours(HashMap::from([("b".to_owned(), own)]));
        titles.count("a;b", 1, false);
        titles.place("a;b", 10);
        let frame = |title: &str, y: u32| {
            let rectangle = format!("<rect y=\"{y}\" fill=\"rgb(1,2,3)\" fg:x=\"0\" fg:w=\"10\"/>");
            format!("<title>{title} (10 ns, 100%)</title>{rectangle}")
        };
        let drawing = format!("{}{}{}", frame("all", 40), frame("a", 20), frame("b", 0));
        let mut out = Vec::new();
        retitle(&drawing, &titles, false, &mut out).expect("memory takes all");
        let out = String::from_utf8(out).expect("text");
        let fills: Vec<_> = out.split("fill=\"").skip(1).map(|it| it.split_once('"')).collect();
        let fills: Vec<_> = fills.into_iter().flatten().map(|(fill, _)| fill).collect();
        assert_eq!(fills, ["rgb(1,2,3)", "rgb(1,2,3)", "#33aaff"], "{out}");
    }

    #[test]
    fn a_drawing_without_frames_stays() {
        let mut out = Vec::new();
        retitle("<svg><text>all (3 ns, 100%)</text></svg>", &Titles::default(), false, &mut out)
            .expect("memory takes all");
        assert_eq!(out, b"<svg><text>all (3 ns, 100%)</text></svg>");
    }
}
