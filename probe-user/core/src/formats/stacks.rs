//! Flame graphs of call paths that are no recording's, such as a fleet's.

use super::folded::{self, Stack};
use super::out::Out;
use super::{Drawing, ExportError, flamegraph};
use std::io::Write;

/// Paths with their sums, sorted.
pub struct Stacks(Vec<Stack>);

impl Stacks {
    /// Takes paths, outermost function first, with their own time and their calls.
    pub fn of<'a>(
        paths: impl Iterator<Item = (Vec<&'a str>, u64, u64)>,
    ) -> Result<Self, ExportError> {
        let stack = |(path, own, calls): (Vec<&str>, u64, u64)| Stack {
            frames: folded::joined(&path),
            own,
            calls,
        };
        Ok(Self(folded::sorted(paths.map(stack))?))
    }

    /// Writes a line for each path.
    pub fn fold(&self, out: &mut (dyn Write + Send)) -> Result<(), ExportError> {
        folded::write_lines(&self.0, Out::new(out))
    }

    /// Writes an SVG.
    pub fn draw(self, drawing: Drawing, out: &mut (dyn Write + Send)) -> Result<(), ExportError> {
        flamegraph::draw(self.0, None, drawing, Out::new(out))
    }
}
