//! Detects slow calls as they go into a chunk.

use super::harvest::Harvest;
use crate::calls::paths::Node;
use crate::units::{FuncId, Nanos};

/// The longest of some slow calls, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slow {
    /// The function of the longest call.
    pub function: FuncId,
    /// The time at which it began.
    pub start: Nanos,
    /// Its duration.
    pub duration: Nanos,
    /// The number of slow calls.
    pub calls: u64,
}

/// The threshold from which calls are slow, and the functions it applies to.
#[derive(Debug, Default)]
pub(crate) struct SlowWatch {
    threshold: Option<Nanos>,
    /// True for watched functions, by id.
    wanted: Vec<bool>,
    longest: Option<Slow>,
}

impl SlowWatch {
    pub(crate) fn set(&mut self, threshold: Nanos, wanted: Vec<bool>) {
        (self.threshold, self.wanted) = (Some(threshold), wanted);
    }

    pub(crate) fn take(&mut self) -> Option<Slow> {
        self.longest.take()
    }

    pub(crate) fn look(&mut self, calls: &Harvest, nodes: &[Node]) {
        let Some(threshold) = self.threshold else { return };
        for call in calls.calls() {
            let duration = Nanos(call.duration);
            if !call.timed || duration < threshold {
                continue;
            }
            let Some(function) = nodes.get(call.node as usize).map(|node| node.func) else {
                continue;
            };
            if self.wanted.get(function.index()) != Some(&true) {
                continue;
            }
            let calls = self.longest.map_or(0, |slow| slow.calls) + 1;
            let start = Nanos(call.start);
            let longer = self.longest.filter(|slow| slow.duration >= duration);
            let longest = longer.unwrap_or(Slow { function, start, duration, calls });
            self.longest = Some(Slow { calls, ..longest });
        }
    }
}
