//! The bytes of one function, in one or more pieces, and the state of each.

use std::ops::Range;

/// The state of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Not reached.
    Unknown,
    /// The first byte of an instruction.
    Instruction,
    /// A later byte of one.
    Inside,
}

#[derive(Debug)]
struct Part {
    start: u64,
    marks: Vec<Mark>,
}

impl Part {
    fn index(&self, address: u64) -> Option<usize> {
        let index = usize::try_from(address.checked_sub(self.start)?).ok()?;
        (index < self.marks.len()).then_some(index)
    }
}

/// The pieces of a function.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    parts: Vec<Part>,
}

impl Extent {
    pub(crate) fn add(&mut self, start: u64, length: usize) {
        if self.mark(start).is_none() {
            self.parts.push(Part { start, marks: vec![Mark::Unknown; length] });
        }
    }

    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.parts.iter().map(|part| part.start..part.start + part.marks.len() as u64)
    }

    /// Returns the state of a byte, `None` outside the function.
    pub(crate) fn mark(&self, address: u64) -> Option<Mark> {
        self.parts.iter().find_map(|part| Some(part.marks[part.index(address)?]))
    }

    /// Returns the number of bytes from `address` to the end of its piece.
    pub(crate) fn left(&self, address: u64) -> usize {
        let mut lefts =
            self.parts.iter().filter_map(|part| Some(part.marks.len() - part.index(address)?));
        lefts.next().unwrap_or(0)
    }

    /// Marks an instruction. Returns `false` if it overlaps another or the piece's end.
    pub(crate) fn take(&mut self, address: u64, length: usize) -> bool {
        for part in &mut self.parts {
            let Some(from) = part.index(address) else { continue };
            let Some(bytes) = part.marks.get_mut(from..from + length) else { return false };
            if bytes.iter().any(|&mark| mark != Mark::Unknown) {
                return false;
            }
            bytes.fill(Mark::Inside);
            if let Some(first) = bytes.first_mut() {
                *first = Mark::Instruction;
            }
            return true;
        }
        false
    }

    /// Returns the runs of bytes that were not reached.
    pub(crate) fn gaps(&self) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        for part in &self.parts {
            let mut at = part.start;
            for run in part.marks.chunk_by(|a, b| (*a == Mark::Unknown) == (*b == Mark::Unknown)) {
                let end = at + run.len() as u64;
                if run.first() == Some(&Mark::Unknown) {
                    gaps.push((at, end));
                }
                at = end;
            }
        }
        gaps
    }
}
