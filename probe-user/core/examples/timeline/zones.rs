//! The calls of a recording as Tracy keeps them: zones of 22 bytes, each with a list of those inside it.

use ctrace_core::recording::{Call, Recording};
use std::collections::HashMap;
use std::error::Error;

/// Stands for no list.
const NONE: u32 = u32::MAX;

/// Tracy's `ZoneEvent`: two times of 48 bits, each beside 16 bits of something else.
#[derive(Clone, Copy)]
pub(crate) struct Zone {
    start_and_source: [u8; 8],
    inside_high: [u8; 2],
    end_and_inside: [u8; 8],
    _extra: [u8; 4],
}

impl Zone {
    fn new(start: u64, end: u64, source: u16, inside: u32) -> Self {
        Self {
            start_and_source: (start << 16 | u64::from(source)).to_le_bytes(),
            inside_high: ((inside >> 16) as u16).to_le_bytes(),
            end_and_inside: (end << 16 | u64::from(inside as u16)).to_le_bytes(),
            _extra: [0; 4],
        }
    }

    #[inline]
    pub(crate) fn start(&self) -> u64 {
        u64::from_le_bytes(self.start_and_source) >> 16
    }

    #[inline]
    pub(crate) fn end(&self) -> u64 {
        u64::from_le_bytes(self.end_and_inside) >> 16
    }

    /// Returns the number of the list of zones inside it.
    #[inline]
    pub(crate) fn inside(&self) -> Option<usize> {
        let low = u64::from_le_bytes(self.end_and_inside) as u16;
        let number = u32::from(u16::from_le_bytes(self.inside_high)) << 16 | u32::from(low);
        (number != NONE).then_some(number as usize)
    }
}

/// The zones of a thread.
#[derive(Default)]
pub(crate) struct Thread {
    pub(crate) outermost: Vec<Zone>,
    pub(crate) inside: Vec<Box<[Zone]>>,
    /// Zones whose caller has not ended yet, by depth.
    waiting: Vec<Vec<Zone>>,
}

impl Thread {
    /// Adds a call that ended after all others so far.
    fn add(&mut self, call: &Call, depth: usize, source: u16) {
        if self.waiting.len() < depth + 2 {
            self.waiting.resize_with(depth + 2, Vec::new);
        }
        let below = &mut self.waiting[depth + 1];
        let inside = match below.is_empty() {
            true => NONE,
            false => {
                self.inside.push(below.as_slice().into());
                below.clear();
                self.inside.len() as u32 - 1
            }
        };
        let zone = Zone::new(call.start().0, call.end().0, source, inside);
        match depth {
            0 => self.outermost.push(zone),
            _ => self.waiting[depth].push(zone),
        }
    }
}

/// Reads all calls of a recording.
pub(crate) fn of(recording: &Recording) -> Result<Vec<Thread>, Box<dyn Error>> {
    let mut threads = HashMap::<_, Thread>::new();
    let mut depths = HashMap::new();
    for entry in recording.chunks() {
        let chunk = recording.chunk(entry)?;
        for of_thread in chunk.threads() {
            let thread = threads.entry(of_thread.thread).or_default();
            // A chunk has the last call of a thread first.
            for call in chunk.calls(of_thread).iter().rev() {
                let (depth, source) =
                    *depths.entry(call.path()).or_insert_with(|| place(recording, call.path()));
                thread.add(call, depth, source);
            }
        }
    }
    Ok(threads.into_values().collect())
}

/// Returns the number of calls around those of a path, and their function.
fn place(recording: &Recording, path: u32) -> (usize, u16) {
    let (mut depth, mut parent) = (0, recording.path(path).map_or(0, |node| node.parent));
    while let Some(node) = recording.path(parent).filter(|_| parent != 0) {
        (depth, parent) = (depth + 1, node.parent);
    }
    (depth, recording.path(path).map_or(0, |node| node.function.0 as u16))
}
