//! The calls that the programs count without an event of each, as user space reads them.
//!
//! The counts are in memory that both sides share, so a reading takes no system call for a path. They
//! only grow, and each is read in one piece.

use super::{per_cpu::PerCpuCounters, words::Words};
use crate::bpf::{BpfError, sys};
use ctrace_common::{
    BUCKETS, CountedFunction, CountedValue, Counting, ENDS_ARE_SEEN, ENDS_BY_RETURN,
    ENTRY_IS_LOOP_HEAD, FAR_AWAY, FIRST_BUCKETS, LONGEST, MOST_COUNTED_THREADS,
    MOST_COUNTED_VALUES, MOST_OPEN, NO_VALUE, OWN_NS, OpenCall, OpenCalls, PAGE_LEN, PATHS_FULL,
    SHORTEST, SQUARES_HIGH, SQUARES_LOW, TAIL_CALLS_NEST, THREADS_FULL, TIMED, TIMED_NS, TOO_DEEP,
    UNTIMED, UNTIMED_NS, VALUE_SHIFT,
};
use ctrace_core::{
    engine::{CountedApart, CountedCalls, CountedSums, ValuedCalls},
    function::ExitSeen,
    units::{FuncId, Nanos},
};
use std::{
    collections::HashSet,
    io,
    mem::offset_of,
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
};

/// The most paths, however much memory there is.
const MOST_PATHS: u64 = 4096;
const LEAST_PATHS: u64 = 64;
/// The paths for which there should be room: CPUs share counts for that.
const GOOD_PATHS: u64 = 1024;
pub(super) const MOST_FUNCTIONS: usize = 1 << 20;

/// Sizes of the maps, fixed before the programs are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedSizes {
    /// Paths that have counts, with the one that has no calls.
    pub paths: u32,
    /// Groups of CPUs that have counts of their own.
    pub groups: u32,
    pub functions: u32,
    /// The shortest calls that are counted.
    pub shortest: Nanos,
    /// The calls of a thread inside each other that are counted.
    pub nested: usize,
    /// Elements for values by which calls are counted apart.
    pub values: u32,
}

impl CountedSizes {
    /// Returns those that take about this much memory on a machine with this many rings.
    pub(crate) fn within(bytes: u64, rings: usize, functions: usize, shortest: Nanos) -> Self {
        let pages = bytes / PAGE_LEN as u64;
        let groups = (pages / GOOD_PATHS).clamp(1, rings.max(1) as u64);
        let paths = (pages / groups).clamp(LEAST_PATHS, MOST_PATHS) as u32;
        let functions = functions.clamp(1, MOST_FUNCTIONS) as u32;
        let (groups, nested, values) = (groups as u32, MOST_OPEN, 1);
        Self { paths, groups, functions, shortest, nested, values }
    }

    /// Returns the same for calls inside fewer others than this.
    pub(crate) fn nested(self, most: Option<u32>) -> Self {
        Self { nested: most.map_or(MOST_OPEN, |most| MOST_OPEN.min(most as usize)), ..self }
    }

    /// Returns the same with room for values.
    pub(crate) fn with_values(self) -> Self {
        Self { values: MOST_COUNTED_VALUES + 1, ..self }
    }
}

/// Calls that have no duration, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncounted {
    pub(crate) threads_full: u64,
    pub(crate) paths_full: u64,
    pub(crate) too_deep: u64,
    pub(crate) far_away: u64,
}

/// The maps that hold the counts.
pub(crate) struct CountedMaps {
    pub(crate) counting: Arc<OwnedFd>,
    pub(crate) counts: Arc<OwnedFd>,
    pub(crate) keys: Arc<OwnedFd>,
    pub(crate) values: Arc<OwnedFd>,
    pub(crate) functions: Arc<OwnedFd>,
    pub(crate) open: Arc<OwnedFd>,
    pub(crate) uncounted: PerCpuCounters,
}

/// The calls that are open, as their paths and functions.
#[derive(Debug, Default)]
pub(crate) struct OpenNow {
    pub(crate) calls: Vec<(u32, FuncId)>,
    /// So many threads came and went meanwhile that some may be missing.
    pub(crate) is_part: bool,
}

pub(crate) struct Counts {
    sizes: CountedSizes,
    counting: Words,
    counts: Words,
    keys: Words,
    values: Words,
    functions: Words,
    open: Arc<OwnedFd>,
    uncounted: PerCpuCounters,
}

/// How calls of a function begin and end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedFacts {
    pub(crate) begins_a_loop: bool,
    /// A call that leaves by a jump is open until what it jumped to returns.
    pub(crate) tail_calls_nest: bool,
    /// The way in which they are seen to end.
    pub(crate) exit: ExitSeen,
}

impl Counts {
    pub(crate) fn map(maps: CountedMaps, sizes: CountedSizes) -> Result<Self, BpfError> {
        let (paths, functions) = (sizes.paths as usize, sizes.functions as usize);
        let groups = sizes.groups as usize;
        let counts = Self {
            sizes,
            counting: Words::map(&maps.counting, size_of::<Counting>())?,
            counts: Words::map(&maps.counts, paths * groups * PAGE_LEN)?,
            keys: Words::map(&maps.keys, paths * 8)?,
            values: Words::map(&maps.values, sizes.values as usize * size_of::<CountedValue>())?,
            functions: Words::map(&maps.functions, functions * size_of::<CountedFunction>())?,
            open: maps.open,
            uncounted: maps.uncounted,
        };
        // Nothing counts before the start is known.
        counts.begin(Nanos::MAX);
        Ok(counts)
    }

    /// Counts calls from this time on.
    pub(crate) fn begin(&self, start: Nanos) {
        self.counting.set(offset_of!(Counting, end), u64::MAX);
        self.counting.set(offset_of!(Counting, start), start.0);
    }

    /// Counts calls up to this time only.
    pub(crate) fn count_until(&self, end: Nanos) {
        self.counting.set(offset_of!(Counting, end), end.0);
    }

    /// Returns the last time at which calls count.
    pub(crate) fn until(&self) -> Nanos {
        Nanos(self.counting.get(offset_of!(Counting, end)))
    }

    /// Tells the programs how calls of a function begin and end.
    pub(crate) fn know(&self, function: FuncId, facts: CountedFacts) {
        let CountedFacts { begins_a_loop, tail_calls_nest, exit } = facts;
        let facts = [
            (begins_a_loop, ENTRY_IS_LOOP_HEAD),
            (tail_calls_nest, TAIL_CALLS_NEST),
            (exit == ExitSeen::ByReturnProbe, ENDS_BY_RETURN),
            (exit != ExitSeen::Never, ENDS_ARE_SEEN),
        ];
        let facts = facts.iter().filter(|(is_so, _)| *is_so).map(|(_, bit)| bit).sum();
        if let Some(at) = self.place(function) {
            self.functions.set(at + offset_of!(CountedFunction, facts), facts);
        }
    }

    /// Ends the open calls of these functions, whose ends are not seen any more.
    pub(crate) fn forsake(&self, functions: impl IntoIterator<Item = FuncId>, at: Nanos) {
        for place in functions.into_iter().filter_map(|function| self.place(function)) {
            self.functions.set(place + offset_of!(CountedFunction, forsaken), at.0);
        }
        let changes = offset_of!(Counting, changes);
        self.counting.set(changes, self.counting.get(changes) + 1);
    }

    fn place(&self, function: FuncId) -> Option<usize> {
        let is_known = function.0 < self.sizes.functions;
        is_known.then(|| function.index() * size_of::<CountedFunction>())
    }

    /// Returns the open calls of all threads.
    pub(crate) fn open(&self) -> Result<OpenNow, BpfError> {
        let map = self.open.as_fd();
        let (threads, is_part) = all_keys(|key| sys::map_next_key(map, key), MOST_COUNTED_THREADS)
            .map_err(|source| BpfError::Map { what: "open calls", source })?;
        let mut open = Vec::new();
        let mut words = vec![0_u64; size_of::<OpenCalls>() / 8];
        for tid in threads {
            // The thread may have ended meanwhile.
            if sys::map_lookup(self.open.as_fd(), tid, &mut words).is_err() {
                continue;
            }
            let depth =
                (words[offset_of!(OpenCalls, depth) / 8] as u32 as usize).min(self.sizes.nested);
            let calls = &words[offset_of!(OpenCalls, calls) / 8..];
            let calls = calls.chunks_exact(size_of::<OpenCall>() / 8).take(depth);
            open.extend(calls.map(|call| {
                let word = call[offset_of!(OpenCall, function) / 8];
                ((word >> 32) as u32, FuncId(word as u32))
            }));
        }
        Ok(OpenNow { calls: open, is_part })
    }

    pub(crate) fn uncounted(&self) -> Result<Uncounted, BpfError> {
        Ok(Uncounted {
            threads_full: self.uncounted.sum(THREADS_FULL)?,
            paths_full: self.uncounted.sum(PATHS_FULL)?,
            too_deep: self.uncounted.sum(TOO_DEEP)?,
            far_away: self.uncounted.sum(FAR_AWAY)?,
        })
    }

    pub(crate) fn sizes(&self) -> CountedSizes {
        self.sizes
    }

    /// Iterates over the places of a path's counts.
    fn places(&self, path: u32) -> impl Iterator<Item = usize> {
        let each = self.sizes.paths as usize;
        let groups = 0..self.sizes.groups as usize;
        groups.map(move |group| (group * each + path as usize) * PAGE_LEN)
    }
}

/// Returns the keys of a map, each once, and whether some may be missing. `next` returns the one after
/// another, or the first one if that is gone.
pub(super) fn all_keys(
    mut next: impl FnMut(Option<u32>) -> io::Result<Option<u32>>,
    room: u32,
) -> io::Result<(Vec<u32>, bool)> {
    let (mut keys, mut seen) = (Vec::new(), HashSet::new());
    let mut last = None;
    // Keys that come and go meanwhile must not make this endless.
    for _ in 0..8 * room {
        last = next(last)?;
        let Some(key) = last else { return Ok((keys, false)) };
        if seen.insert(key) {
            keys.push(key);
        }
    }
    Ok((keys, true))
}

const _: () = assert!(offset_of!(OpenCall, function).is_multiple_of(8));
const _: () = assert!(offset_of!(OpenCall, path) == offset_of!(OpenCall, function) + 4);

impl CountedCalls for Counts {
    fn path(&self, number: u32) -> Option<(u32, FuncId)> {
        if number >= self.sizes.paths {
            return None;
        }
        let key = self.keys.get(number as usize * 8).checked_sub(1)?;
        let (caller, function) = ((key >> 32) as u32 & 0xffff, FuncId(key as u32));
        (caller < number).then_some((caller, function))
    }

    fn sums(&self, path: u32) -> CountedSums {
        let mut all = CountedSums::default();
        for place in self.places(path) {
            let word = |index: usize| self.counts.get(place + index * 8);
            let timed = word(TIMED);
            if timed == 0 && word(UNTIMED) == 0 {
                continue;
            }
            all.timed += timed;
            all.timed_ns = all.timed_ns.saturating_add(word(TIMED_NS));
            all.own_ns = all.own_ns.saturating_add(word(OWN_NS));
            all.squares += u128::from(word(SQUARES_LOW)) + (u128::from(word(SQUARES_HIGH)) << 32);
            if timed > 0 {
                let (least, most) = (!word(SHORTEST), word(LONGEST));
                let (old_least, old_most) = all.extremes.unwrap_or((least, most));
                all.extremes = Some((least.min(old_least), most.max(old_most)));
            }
            all.untimed += word(UNTIMED);
            all.untimed_ns = all.untimed_ns.saturating_add(word(UNTIMED_NS));
        }
        all
    }

    fn buckets(&self, path: u32) -> Vec<u32> {
        let mut all = vec![0_u32; BUCKETS];
        for place in self.places(path).filter(|place| self.counts.get(place + TIMED * 8) > 0) {
            for (index, bucket) in all.iter_mut().enumerate() {
                let at = place + FIRST_BUCKETS * 8 + index * 4;
                *bucket = bucket.wrapping_add(self.counts.half(at));
            }
        }
        all
    }

    fn apart(&self, function: FuncId) -> CountedApart {
        let Some(at) = self.place(function) else { return CountedApart::default() };
        CountedApart {
            headless: self.functions.get(at + offset_of!(CountedFunction, headless)),
            unplaced: self.functions.get(at + offset_of!(CountedFunction, unplaced)),
            short: self.functions.get(at + offset_of!(CountedFunction, short)),
        }
    }
}

// The number of a value stands above it in a key.
const _: () = assert!(MOST_PATHS <= 1 << (VALUE_SHIFT - 32));

impl ValuedCalls for Counts {
    fn value_number(&self, path: u32) -> u32 {
        let key = (path < self.sizes.paths).then(|| self.keys.get(path as usize * 8));
        key.and_then(|key| key.checked_sub(1)).map_or(NO_VALUE, |key| (key >> VALUE_SHIFT) as u32)
    }

    fn value(&self, number: u32) -> CountedValue {
        if number >= self.sizes.values {
            return CountedValue::default();
        }
        let word = |at| self.values.get(number as usize * size_of::<CountedValue>() + at);
        let text = offset_of!(CountedValue, text);
        CountedValue {
            forms: word(offset_of!(CountedValue, forms)),
            word: word(offset_of!(CountedValue, word)),
            text: std::array::from_fn(|place| word(text + place * 8)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_share_the_memory_of_all_cpus() {
        let sizes = |bytes, rings| {
            let sizes = CountedSizes::within(bytes, rings, 7, Nanos(3));
            (sizes.paths, sizes.groups)
        };
        assert_eq!(sizes(64 << 20, 8), (2048, 8));
        assert_eq!(sizes(64 << 20, 2), (4096, 2));
        // Each of 16 groups of CPUs has counts of its own.
        assert_eq!(sizes(64 << 20, 64), (1024, 16));
        assert_eq!(sizes(1, 300), (64, 1));
        assert_eq!(CountedSizes::within(1, 1, 0, Nanos(3)).functions, 1);
    }

    #[test]
    fn a_thread_that_ends_meanwhile_lets_no_other_count_twice() {
        let mut left = vec![11, 12, 13, 14];
        let found = all_keys(
            |after| {
                let at = after.and_then(|key| left.iter().position(|other| *other == key));
                let next = left.get(at.map_or(0, |at| at + 1)).copied();
                if next == Some(13) {
                    left.retain(|key| *key != 13);
                }
                Ok(next)
            },
            MOST_COUNTED_THREADS,
        );
        assert_eq!(found.expect("no error"), (vec![11, 12, 13, 14], false));
        let mut fresh = 0;
        let (keys, is_part) = all_keys(
            |_| {
                fresh += 1;
                Ok(Some(fresh))
            },
            MOST_COUNTED_THREADS,
        )
        .expect("no error");
        assert!(is_part && keys.len() > MOST_COUNTED_THREADS as usize);
    }
}
