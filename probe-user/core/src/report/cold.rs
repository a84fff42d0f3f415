//! Probes that are hit rarely cost more than those in a loop, in which their cost is measured: between two hits,
//! the program's own work takes the caches from them. A call after 0.1 ms of other work was seen to contain
//! once more of the measured cost, one after 1 ms of sleep one and a half times more (docs/statistics.md).
//!
//! How long each thread did something else before each hit is not kept. The path tree tells it on average.

use super::{FunctionReport, PathReport, ThreadReport};
use crate::units::Nanos;

/// What the measured cost of a hit may be wrong by in percent, for each doubling of the pause beyond a
/// microsecond.
const PERCENT_EACH: u64 = 18;
/// The most that it may be.
const MOST_PERCENT: u64 = 200;

/// Returns for each path by how much of its measured cost the true one may be higher, in percent. Parents come
/// before their children in `paths`.
pub(super) fn doubts(
    functions: &[FunctionReport],
    paths: &[PathReport],
    threads: &[ThreadReport],
    whole: Nanos,
) -> Vec<u64> {
    // No probe tells of it.
    let is_wait = |path: &PathReport| {
        functions.get(path.function).is_some_and(|function| function.wait.is_some())
    };
    let parent_of = |at: usize| paths[at].parent.filter(|parent| *parent < at);
    // The calls in which a thread's own time ends: those of the path, and those directly inside.
    let mut hits: Vec<u64> = paths.iter().map(|path| path.calls).collect();
    let mut outside: Vec<Nanos> = paths.iter().map(|path| path.self_ns).collect();
    let (mut outermost, mut within) = (0_u64, Nanos::ZERO);
    for (at, path) in paths.iter().enumerate() {
        match parent_of(at) {
            Some(parent) if is_wait(path) => {
                outside[parent] = outside[parent].saturating_add(path.total_ns);
            }
            Some(parent) => hits[parent] = hits[parent].saturating_add(path.calls),
            None => {
                outermost = outermost.saturating_add(path.calls);
                within = within.saturating_add(path.total_ns);
            }
        }
    }
    let traced = threads.iter().map(|thread| thread.last_ns.since(thread.first_ns));
    let traced = traced.fold(Nanos::ZERO, Nanos::saturating_add);
    let traced = if threads.is_empty() { whole } else { traced };
    let between = Nanos(traced.since(within).0 / outermost.max(1));
    let pause =
        |at: usize| parent_of(at).map_or(between, |it| Nanos(outside[it].0 / hits[it].max(1)));
    (0..paths.len()).map(|at| percent(pause(at))).collect()
}

fn percent(pause: Nanos) -> u64 {
    let doublings = (pause.0 / 1_000).checked_ilog2().unwrap_or(0);
    MOST_PERCENT.min(PERCENT_EACH * u64::from(doublings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::FunctionInfo;
    use crate::waits::WaitClass;

    fn path(parent: Option<usize>, calls: u64, total: u64, own: u64) -> PathReport {
        let (total_ns, self_ns) = (Nanos(total), Nanos(own));
        PathReport { parent, calls, total_ns, self_ns, ..PathReport::default() }
    }

    /// A function, and a wait.
    fn functions() -> [FunctionReport; 2] {
        [None, Some(WaitClass::Blocked)]
            .map(|wait| FunctionReport::new(&FunctionInfo { wait, ..FunctionInfo::new("f", "p") }))
    }

    #[test]
    fn the_longer_the_pause_the_more_it_may_be() {
        let pauses = [0, 999, 1_999, 2_000, 100_000, 1_000_000, 1 << 50];
        assert_eq!(pauses.map(|pause| percent(Nanos(pause))), [0, 0, 0, 18, 108, 162, 200]);
    }

    #[test]
    fn pauses_are_those_of_the_caller_or_of_the_thread() {
        let thread = |first, last| ThreadReport {
            first_ns: Nanos(first),
            last_ns: Nanos(last),
            ..ThreadReport::default()
        };
        // Two threads are traced for 8 ms. 10 calls take 6.72 ms: 128 µs are between two of them. 990 calls are
        // made in 4 ms of the first, 4 µs each.
        let paths =
            [path(None, 10, 6_720_000, 4_000_000), path(Some(0), 990, 2_720_000, 2_720_000)];
        let threads = [thread(1_000, 5_001_000), thread(2_000, 3_002_000)];
        assert_eq!(doubts(&functions(), &paths, &threads, Nanos(77)), [18 * 7, 18 * 2]);
        assert_eq!(doubts(&functions(), &paths, &[], Nanos(6_740_480)), [18, 18 * 2]);
    }

    #[test]
    fn a_wait_is_a_pause() {
        // 10 calls and 10 waits of 1 ms in 10 calls that do nothing else, and a path that is its own parent.
        let mut paths = [
            path(None, 10, 10_400_000, 200_000),
            path(Some(0), 10, 10_000_000, 10_000_000),
            path(Some(0), 10, 200_000, 200_000),
            path(Some(3), 1, 5, 5),
        ];
        paths[1].function = 1;
        // 510 µs pass between two hits.
        assert_eq!(doubts(&functions(), &paths, &[], Nanos(0))[1..3], [18 * 8; 2]);
    }
}
