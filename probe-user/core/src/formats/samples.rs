//! Finds the innermost call at each look (sampling time) of a thread.
//!
//! Each look is marked once, however many calls there are: calls are visited from the innermost
//! outwards, and mark only unmarked looks.

use crate::recording::ROOT_PATH;

/// A range of looks, by first and end, and their path.
type Span = (usize, usize, u32);

#[derive(Default)]
pub(super) struct Samples {
    spans: Vec<Span>,
    paths: Vec<u32>,
    /// For each look, the same or a later one, but none beyond the next unmarked look.
    next: Vec<usize>,
}

impl Samples {
    /// Restarts with `count` unmarked looks.
    pub(super) fn begin(&mut self, count: usize) {
        self.spans.clear();
        self.paths.clear();
        self.paths.resize(count, ROOT_PATH);
        self.next.clear();
        self.next.extend(0..=count);
    }

    /// Adds a call around the looks `from..to`. Calls added later take precedence.
    pub(super) fn mark(&mut self, from: u64, to: u64, path: u32) {
        let all = self.paths.len() as u64;
        let (from, to) = (from.min(all) as usize, to.min(all) as usize);
        if from < to {
            self.spans.push((from, to, path));
        }
    }

    /// Returns the path at each look.
    pub(super) fn paths(&mut self) -> &[u32] {
        while let Some((from, to, path)) = self.spans.pop() {
            let mut at = self.unmarked(from);
            while at < to {
                self.paths[at] = path;
                self.next[at] = at + 1;
                at = self.unmarked(at + 1);
            }
        }
        &self.paths
    }

    /// Returns the first unmarked look from `at` on.
    fn unmarked(&mut self, mut at: usize) -> usize {
        while self.next[at] != at {
            // This halves the path of the next search.
            self.next[at] = self.next[self.next[at]];
            at = self.next[at];
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_was_marked_last_is_seen(
            spans in prop::collection::vec((0_u64..40, 0_u64..40, 1_u32..9), 0..30),
            count in 0_usize..30,
        ) {
            let mut samples = Samples::default();
            let mut expected = vec![ROOT_PATH; count];
            samples.begin(count);
            for (from, to, path) in spans {
                samples.mark(from, to, path);
                let (from, to) = ((from as usize).min(count), (to as usize).min(count));
                expected.get_mut(from..to).into_iter().for_each(|part| part.fill(path));
            }
            prop_assert_eq!(samples.paths(), &*expected);
        }
    }

    /// Marking each look for each call would take an hour.
    #[test]
    fn calls_around_everything_cost_no_more_than_others() {
        let mut samples = Samples::default();
        samples.begin(1_000_000);
        (0..3_000_000).for_each(|n| samples.mark(0, u64::MAX, n));
        let begun = Instant::now();
        assert!(samples.paths().iter().all(|path| *path == 2_999_999));
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
