//! Spooled durations of timed calls, grouped by function and within it by path node, so that the
//! ranks of both come from one buffer.

use crate::calls::by_function::ByFunction;
use crate::calls::spool::{Call, LONG};
use std::collections::HashMap;
use std::ops::Range;

pub(crate) struct Grouped {
    durations: Vec<u32>,
    /// The range of each node's durations.
    ranges: Vec<Range<usize>>,
    long: HashMap<u32, Vec<u64>>,
}

/// The durations of one group, in any order.
pub(crate) struct DurationGroup<'a> {
    /// The durations; [`LONG`] stands for one that is in `long`.
    pub(crate) short: &'a mut [u32],
    pub(crate) long: Vec<u64>,
}

impl Grouped {
    /// Groups the durations of these calls; `counts` has their number by node.
    pub(crate) fn new(
        calls: impl Iterator<Item = Call>,
        by_function: &ByFunction,
        counts: &[usize],
    ) -> Self {
        let (mut ends, mut ranges) = (vec![0; counts.len()], vec![0..0; counts.len()]);
        let mut count = 0;
        for &node in by_function.all() {
            let (node, start) = (node as usize, count);
            count += counts[node];
            ranges[node] = start..count;
            ends[node] = start;
        }
        let (mut durations, mut long) = (vec![0; count], HashMap::<u32, Vec<u64>>::new());
        // Faster than a loop: the calls of a thread follow one another without a question between.
        calls.for_each(|call| {
            let place = &mut ends[call.node as usize];
            durations[*place] = u32::try_from(call.duration).unwrap_or(LONG);
            *place += 1;
            if call.duration >= u64::from(LONG) {
                long.entry(call.node).or_default().push(call.duration);
            }
        });
        Self { durations, ranges, long }
    }

    /// Returns the durations of nodes that lie together.
    pub(crate) fn group(&mut self, nodes: &[u32]) -> DurationGroup<'_> {
        let long = nodes.iter().filter_map(|node| self.long.get(node)).flatten().copied().collect();
        let range = match (nodes.first(), nodes.last()) {
            (Some(&first), Some(&last)) => {
                self.ranges[first as usize].start..self.ranges[last as usize].end
            }
            _ => 0..0,
        };
        DurationGroup { short: &mut self.durations[range], long }
    }
}
