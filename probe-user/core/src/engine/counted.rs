//! Calls that the eBPF programs have counted, without an event of each.
//!
//! The programs' counts only grow. Each reading is compared with the one before, and what has come since
//! goes where the calls of events go: into the tallies and the histograms of their paths. So a report
//! does not depend on how calls were counted, but for what only single calls tell.

mod parts;

use crate::calls::paths::ROOT;
use crate::engine::Engine;
use crate::engine::ledger::Ledger;
use crate::engine::tracker::Tracker;
use crate::stats::histogram::{Histogram, log_bounds};
use crate::stats::tally::Tally;
use crate::units::FuncId;
use crate::waits::Waits;
use ctrace_common::BUCKET_BITS;
pub use parts::{CountedPart, CountedParts, ValuedCalls};

/// The sums of a path since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedSums {
    pub timed: u64,
    pub timed_ns: u64,
    pub own_ns: u64,
    pub squares: u128,
    /// `None`: no call is timed.
    pub extremes: Option<(u64, u64)>,
    pub untimed: u64,
    pub untimed_ns: u64,
}

/// The counts of a function beside those of its paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedApart {
    pub headless: u64,
    /// Calls of which nothing else is known, because something had no room for them.
    pub unplaced: u64,
    /// Calls that were shorter than asked for.
    pub short: u64,
}

/// The counts of the eBPF programs.
pub trait CountedCalls {
    /// Returns the caller's path and the function of a path, if there is a path of this number. Numbers
    /// begin with 1; 0 calls the first functions. Callers come before those that they call.
    fn path(&self, number: u32) -> Option<(u32, FuncId)>;
    fn sums(&self, path: u32) -> CountedSums;
    /// Returns the number of timed calls by bucket of the duration, since the start. Each goes from
    /// its greatest number on with 0.
    fn buckets(&self, path: u32) -> Vec<u32>;
    fn apart(&self, function: FuncId) -> CountedApart;
}

/// A path as it was read the last time.
#[derive(Debug)]
struct Path {
    node: u32,
    function: FuncId,
    sums: CountedSums,
    buckets: Vec<u32>,
}

/// The last reading.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// Those from number 1 on.
    paths: Vec<Path>,
    apart: Vec<CountedApart>,
    /// Open calls by path node.
    pub(crate) open: Vec<u64>,
}

/// The greatest difference of two counts that calls may make that end during a reading.
const IN_FLIGHT: u64 = u32::MAX as u64 / 2;

impl Engine {
    /// Takes in what the programs have counted since the last time.
    pub fn take_counted(&mut self, calls: &impl CountedCalls) {
        let tracker = &mut self.tracker;
        let mut counted = tracker.counted.take().unwrap_or_default();
        counted.learn_paths(calls, &mut tracker.ledger);
        for (number, path) in (1..).zip(&mut counted.paths) {
            path.take(number, calls, tracker);
        }
        counted.take_apart(calls, tracker);
        tracker.counted = Some(counted);
    }

    /// Sets the calls that are open now, as their paths and functions. A path may be missing.
    pub fn set_counted_open(&mut self, calls: impl IntoIterator<Item = (u32, FuncId)>) {
        let Tracker { counted, ledger, functions, .. } = &mut self.tracker;
        let Some(counted) = counted else { return };
        counted.open.clear();
        for (path, function) in calls {
            let known = (path as usize).checked_sub(1).and_then(|at| counted.paths.get(at));
            let node = match known {
                Some(path) => path.node,
                None if function.index() < functions.len() => ledger.other(function),
                None => continue,
            };
            counted.open.resize(ledger.tallies.len(), 0);
            counted.open[node as usize] += 1;
        }
    }
}

impl Counted {
    fn learn_paths(&mut self, calls: &impl CountedCalls, ledger: &mut Ledger) {
        while let Some((caller, function)) = calls.path(self.paths.len() as u32 + 1) {
            if function.index() >= ledger.functions.len() {
                // It is not introduced yet.
                return;
            }
            let caller = (caller as usize).checked_sub(1).and_then(|at| self.paths.get(at));
            let node = ledger.node(caller.map_or(ROOT, |path| path.node), function);
            let (sums, buckets) = (CountedSums::default(), Vec::new());
            self.paths.push(Path { node, function, sums, buckets });
        }
    }

    fn take_apart(&mut self, calls: &impl CountedCalls, tracker: &mut Tracker) {
        let Tracker { ledger, hits, events, functions, .. } = tracker;
        self.apart.resize(functions.len(), CountedApart::default());
        for (index, before) in self.apart.iter_mut().enumerate() {
            let function = FuncId(index as u32);
            let now = calls.apart(function);
            let headless = now.headless.saturating_sub(before.headless);
            let unplaced = now.unplaced.saturating_sub(before.unplaced);
            let short = now.short.saturating_sub(before.short);
            *before = now;
            ledger.functions[index].headless += headless;
            ledger.filtered += short;
            let seen = headless + unplaced + 2 * short;
            hits[index] += seen;
            *events += seen;
            if unplaced > 0 {
                let node = ledger.other(function);
                ledger.calls += unplaced;
                let calls = Tally { untimed: unplaced, ..Tally::default() };
                ledger.tallies[node as usize].merge(&calls);
            }
        }
    }
}

impl Path {
    fn take(&mut self, number: u32, calls: &impl CountedCalls, tracker: &mut Tracker) {
        let mut now = calls.sums(number);
        if now == self.sums {
            return;
        }
        let mut new = Histogram::default();
        let before = tally(&self.sums);
        let mut timed = 0;
        let mut bounds = None;
        if now.timed != self.sums.timed {
            let (buckets, since) = self.read_whole(number, calls, &mut now);
            timed = since.iter().map(|(_, count)| count).sum();
            bounds = since.first().zip(since.last()).map(|(first, last)| {
                let (from, width) = log_bounds(last.0, BUCKET_BITS);
                (log_bounds(first.0, BUCKET_BITS).0, from.saturating_add(width - 1))
            });
            new = Histogram::of(since.into_iter().map(|(bucket, count)| {
                let (from, width) = log_bounds(bucket, BUCKET_BITS);
                (from + (width >> 1), count)
            }));
            self.buckets = buckets;
        }
        // Calls that end all the time may be in one of the two only. The buckets decide, unless the
        // reading comes so late that one of them has begun anew.
        let told = now.timed.saturating_sub(self.sums.timed);
        if told.saturating_sub(timed) > IN_FLIGHT {
            timed = told;
        }
        self.sums = CountedSums { timed: self.sums.timed + timed, ..now };
        let mut calls = tally(&self.sums).since(&before);
        if let Some((least, most)) = bounds {
            calls.narrow(&before, least, most);
        }
        let Tracker { ledger, period, hits, events, .. } = tracker;
        ledger.tallies[self.node as usize].merge(&calls);
        ledger.calls += calls.ended();
        period.histograms.resize(ledger.tallies.len(), Histogram::default());
        period.histograms[self.node as usize].merge(&new);
        let seen = 2 * calls.timed + calls.untimed;
        hits[self.function.index()] += seen;
        *events += seen;
    }

    /// Reads buckets, and sums that have the same calls. Returns the buckets and the calls since the last
    /// time by bucket.
    fn read_whole(
        &mut self,
        number: u32,
        calls: &impl CountedCalls,
        sums: &mut CountedSums,
    ) -> (Vec<u32>, Vec<(usize, u64)>) {
        /// Calls may end all the time.
        const TRIES: u32 = 4;
        let (mut buckets, mut since) = (Vec::new(), Vec::new());
        for _ in 0..TRIES {
            buckets = calls.buckets(number);
            self.buckets.resize(buckets.len(), 0);
            let more = buckets.iter().zip(&self.buckets).map(|(now, old)| now.wrapping_sub(*old));
            let more = more.enumerate().filter(|(_, count)| *count > 0);
            since = more.map(|(bucket, count)| (bucket, u64::from(count))).collect();
            let before = std::mem::replace(sums, calls.sums(number));
            let ended: u64 = since.iter().map(|(_, count)| count).sum();
            if *sums == before && sums.timed.saturating_sub(self.sums.timed) == ended {
                break;
            }
        }
        (buckets, since)
    }
}

fn tally(sums: &CountedSums) -> Tally {
    let (min_ns, max_ns) = sums.extremes.unwrap_or((u64::MAX, 0));
    Tally {
        timed: sums.timed,
        untimed: sums.untimed,
        timed_ns: sums.timed_ns,
        untimed_ns: sums.untimed_ns,
        self_ns: sums.own_ns,
        waits: Waits::default(),
        min_ns,
        max_ns,
        squares: sums.squares,
    }
}

#[cfg(test)]
#[path = "counted_tests.rs"]
mod tests;
