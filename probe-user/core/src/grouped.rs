//! The spooled durations of the timed calls, grouped by function and within it by path node, so
//! that ranks of both are taken from one buffer.

use crate::paths::Node;
use crate::rank::Durations;
use crate::spool::{LONG, Spool};
use crate::units::FuncId;
use std::collections::HashMap;
use std::ops::Range;

pub(crate) struct Grouped {
    durations: Vec<u32>,
    /// By node: where its durations lie.
    ranges: Vec<Range<usize>>,
    long: HashMap<u32, Vec<u64>>,
    /// Nodes in the order of `durations`.
    order: Vec<u32>,
    /// By place in `order`: the node's function.
    functions: Vec<FuncId>,
}

impl Grouped {
    /// `counts`: by node, the timed calls in the spool.
    pub(crate) fn new(spool: &Spool, nodes: &[Node], counts: impl Iterator<Item = u64>) -> Self {
        let mut ends = counts.map(|count| count as usize).collect::<Vec<_>>();
        let mut order = (0..nodes.len() as u32).collect::<Vec<_>>();
        order.sort_by_key(|&node| nodes[node as usize].func);
        let mut ranges = vec![0..0; nodes.len()];
        let mut count = 0;
        for &node in &order {
            let start = count;
            count += ends[node as usize];
            ranges[node as usize] = start..count;
            ends[node as usize] = start;
        }
        let (mut durations, mut long) = (vec![0; count], HashMap::<u32, Vec<u64>>::new());
        for log in spool.logs() {
            for call in log.backward().filter(|call| call.timed) {
                let place = &mut ends[call.node as usize];
                durations[*place] = u32::try_from(call.duration).unwrap_or(LONG);
                *place += 1;
                if call.duration >= u64::from(LONG) {
                    long.entry(call.node).or_default().push(call.duration);
                }
            }
        }
        let functions = order.iter().map(|&node| nodes[node as usize].func).collect();
        Self { durations, ranges, long, order, functions }
    }

    pub(crate) fn node(&mut self, node: u32) -> Durations<'_> {
        let long = self.long.get(&node).cloned().unwrap_or_default();
        Durations::new(&mut self.durations[self.ranges[node as usize].clone()], long)
    }

    /// The nodes of one function.
    pub(crate) fn nodes_of(&self, func: FuncId) -> &[u32] {
        let first = self.functions.partition_point(|&other| other < func);
        let after = self.functions.partition_point(|&other| other <= func);
        &self.order[first..after]
    }

    pub(crate) fn function(&mut self, func: FuncId) -> Durations<'_> {
        let nodes = self.nodes_of(func);
        let long = nodes.iter().filter_map(|node| self.long.get(node)).flatten().copied().collect();
        let range = match (nodes.first(), nodes.last()) {
            (Some(&first), Some(&last)) => {
                self.ranges[first as usize].start..self.ranges[last as usize].end
            }
            _ => 0..0,
        };
        Durations::new(&mut self.durations[range], long)
    }
}
