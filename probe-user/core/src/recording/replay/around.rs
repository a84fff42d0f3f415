//! Finds the slow calls around a moment without a look at all of them.

use super::slowest::SlowCall;
use crate::calls::paths::Node;
use crate::units::{FuncId, ThreadId};
use std::collections::HashMap;

/// A slow call and its place among the slow calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slow {
    pub(super) place: usize,
    pub(super) start: u64,
    pub(super) function: FuncId,
    end: u64,
    /// The latest end in its part of the tree.
    latest: u64,
}

/// The slow calls of each thread in order of their starts: a balanced tree with the middle of each
/// slice as its root.
#[derive(Debug, Default)]
pub(super) struct Around(HashMap<ThreadId, Vec<Slow>>);

impl Around {
    pub(super) fn new(found: &[SlowCall], nodes: &[Node]) -> Self {
        let mut threads: HashMap<ThreadId, Vec<Slow>> = HashMap::new();
        for (place, SlowCall { call, node, thread, .. }) in found.iter().enumerate() {
            let (start, end, function) = (call.start, call.end(), nodes[*node as usize].func);
            let slow = Slow { place, start, function, end, latest: end };
            threads.entry(*thread).or_default().push(slow);
        }
        for calls in threads.values_mut() {
            calls.sort_by_key(|slow| slow.start);
            note_latest(calls);
        }
        Self(threads)
    }

    /// Shows the thread's calls around this moment, in order of their starts.
    pub(super) fn each(&self, thread: ThreadId, time: u64, mut show: impl FnMut(&Slow)) {
        if let Some(calls) = self.0.get(&thread) {
            visit(calls, time, &mut show);
        }
    }
}

fn note_latest(calls: &mut [Slow]) -> u64 {
    let middle = calls.len() / 2;
    let (before, rest) = calls.split_at_mut(middle);
    let Some((slow, behind)) = rest.split_first_mut() else { return 0 };
    slow.latest = slow.end.max(note_latest(before)).max(note_latest(behind));
    slow.latest
}

fn visit(calls: &[Slow], time: u64, show: &mut impl FnMut(&Slow)) {
    let middle = calls.len() / 2;
    let Some(slow) = calls.get(middle).filter(|slow| slow.latest >= time) else { return };
    visit(&calls[..middle], time, show);
    if slow.start <= time {
        if time <= slow.end {
            show(slow);
        }
        visit(&calls[middle + 1..], time, show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::spool::Call;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_calls_around_a_moment_are_those_that_hold_it(
            calls in prop::collection::vec((0u32..3, 0u64..60, 0u64..40), 0..40),
            moments in prop::collection::vec((0u32..3, 0u64..110), 1..20),
        ) {
            let found: Vec<_> = calls
                .iter()
                .map(|&(thread, start, duration)| SlowCall {
                    call: Call { start, duration, node: 0, timed: true },
                    node: 0,
                    thread: ThreadId(thread),
                    chunk: 0,
                    place: 0,
                })
                .collect();
            let around = Around::new(&found, &[Node::root()]);
            for (thread, time) in moments {
                let mut seen = Vec::new();
                around.each(ThreadId(thread), time, |slow| seen.push(slow.place));
                seen.sort_unstable();
                let holds = |&(_, call): &(usize, &(u32, u64, u64))| {
                    call.0 == thread && call.1 <= time && time <= call.1 + call.2
                };
                let held = calls.iter().enumerate().filter(holds).map(|(place, _)| place);
                prop_assert_eq!(seen, held.collect::<Vec<_>>());
            }
        }
    }
}
