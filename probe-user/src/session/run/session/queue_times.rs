//! How long the target's threads wait for a processor, beside the time that they have one. The work of
//! a probe makes these waits longer, also in other threads, and no calibration can know by how much.

use crate::target::process::{since_boot, threads};
use ctrace_core::{
    report::ProcessorTimes,
    units::{Nanos, Pid, Tid},
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// The threads that are read, if there are more: the ratio is that of these.
const MOST_THREADS: usize = 64;
/// The time between two looks, each of which reads a file of each thread: at first, and at most. Most programs
/// that end soon are looked at, too.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

#[derive(Default)]
pub(super) struct ThreadQueues {
    /// The time since boot at the start.
    begun: Nanos,
    /// By thread: its times at the first and at the last look.
    read: BTreeMap<(Pid, Tid), [ProcessorTimes; 2]>,
    of_ended: ProcessorTimes,
    /// What the reports before this one had.
    told: ProcessorTimes,
    /// The time of the last report is over.
    is_over: bool,
    looked: Option<(Instant, Duration)>,
}

impl ThreadQueues {
    pub(super) fn begin(processes: &[Pid]) -> Self {
        let mut queues = Self { begun: since_boot(), ..Self::default() };
        queues.look(&threads_of(processes), threads::processor_times, |_| true);
        queues
    }

    /// Reads the times, unless they were read a moment ago.
    pub(super) fn update(&mut self, processes: impl FnOnce() -> Vec<Pid>) {
        let pause = match self.looked {
            _ if self.is_over => return,
            Some((at, pause)) if at.elapsed() < pause => return,
            Some((_, pause)) => (pause * 2).min(PAUSES[1]),
            None => PAUSES[0],
        };
        self.looked = Some((Instant::now(), pause));
        let begun = self.begun;
        let is_older = |(pid, tid): (Pid, Tid)| {
            threads::started(pid, tid).is_none_or(|started| started <= begun)
        };
        self.look(&threads_of(&processes()), threads::processor_times, is_older);
    }

    /// Looks for the last time: what threads do while their probes go is in no report.
    pub(super) fn finish(&mut self, processes: impl FnOnce() -> Vec<Pid>) {
        self.looked = None;
        self.update(processes);
        self.is_over = true;
    }

    /// Returns the times since the last report, up to the last look. `None` if no thread has used any.
    pub(super) fn times(&self) -> Option<ProcessorTimes> {
        Some(self.all().since(self.told)).filter(|times| times.used_ns > Nanos::ZERO)
    }

    /// Begins the stretch of the next report.
    pub(super) fn begin_report(&mut self) {
        self.told = self.all();
    }

    fn all(&self) -> ProcessorTimes {
        self.read.values().fold(self.of_ended, |sum, [first, last]| sum.plus(last.since(*first)))
    }

    /// Looks at these threads. The time before the first look does not count of one that `is_older` than the
    /// session.
    fn look(
        &mut self,
        threads: &[(Pid, Tid)],
        read: impl Fn(Pid, Tid) -> Option<ProcessorTimes>,
        is_older: impl Fn((Pid, Tid)) -> bool,
    ) {
        let mut before = std::mem::take(&mut self.read);
        for &(pid, tid) in threads {
            let Some(now) = read(pid, tid) else { continue };
            let first = match before.remove(&(pid, tid)) {
                Some([first, last]) if last.used_ns <= now.used_ns => first,
                // Another thread has the id by now.
                Some([first, last]) => {
                    self.of_ended = self.of_ended.plus(last.since(first));
                    ProcessorTimes::default()
                }
                None if is_older((pid, tid)) => now,
                None => ProcessorTimes::default(),
            };
            self.read.insert((pid, tid), [first, now]);
        }
        let ended = before.into_values().map(|[first, last]| last.since(first));
        self.of_ended = ended.fold(self.of_ended, ProcessorTimes::plus);
    }
}

fn threads_of(processes: &[Pid]) -> Vec<(Pid, Tid)> {
    let of = |&pid: &Pid| threads::ids_of(pid).map(move |tid| (pid, tid));
    processes.iter().flat_map(of).take(MOST_THREADS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_beginning() {
        let ms = Nanos::from_millis;
        let mut queues = ThreadQueues::default();
        let mut look = |times: &[(u32, u64, u64)], older: &[u32], ends_report: bool| {
            let threads: Vec<_> = times.iter().map(|it| (Pid(5), Tid(it.0))).collect();
            let read = |_, tid: Tid| {
                let (_, used, waited) = times.iter().find(|it| it.0 == tid.0)?;
                Some(ProcessorTimes { used_ns: ms(*used), waited_ns: ms(*waited) })
            };
            queues.look(&threads, read, |(_, tid)| older.contains(&tid.0));
            let times = queues.times();
            if ends_report {
                queues.begin_report();
            }
            times.map(|times| (times.used_ns.0 / 1_000_000, times.waited_ns.0 / 1_000_000))
        };
        assert_eq!(look(&[(5, 900, 800), (6, 70, 60)], &[5, 6], false), None);
        // One has ended, one is new, and one is seen late.
        let now = look(&[(5, 910, 840), (7, 3, 2), (8, 500, 400)], &[8], false);
        assert_eq!(now, Some((13, 42)));
        // A later thread has the id of one that had used more.
        assert_eq!(look(&[(5, 20, 5), (8, 501, 407)], &[], true), Some((34, 54)));
        assert_eq!(look(&[(8, 503, 408)], &[], false), Some((2, 1)));
    }
}
