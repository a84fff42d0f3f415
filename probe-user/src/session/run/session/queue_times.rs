//! How long the target's threads wait for a processor, beside the time that they have one. The work of
//! a probe makes these waits longer, also in other threads, and no calibration can know by how much.

use crate::target::process::cpu_times::{self, QueueTimes};
use ctrace_core::{
    report::ProcessorTimes,
    units::{Nanos, Pid, Tid},
};
use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::{Duration, Instant},
};

/// The threads that are read, if there are more: the ratio is that of these.
const MOST_THREADS: usize = 64;
/// The threads whose times are kept, those that have ended included.
const MOST_KEPT: usize = 4_096;
/// A look reads a file of each thread.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct ThreadQueues {
    /// By thread: its times at the first and at the last look.
    read: BTreeMap<(Pid, Tid), [QueueTimes; 2]>,
    last: Option<Instant>,
}

impl ThreadQueues {
    pub(super) fn begin(processes: &[Pid]) -> Self {
        let mut queues = Self::default();
        queues.look(&threads_of(processes), QueueTimes::of, |now| now);
        queues
    }

    /// Reads the times, unless they were read a moment ago.
    pub(super) fn update(&mut self, processes: &[Pid]) {
        if self.last.is_none_or(|last| last.elapsed() >= PAUSE) {
            self.last = Some(Instant::now());
            // All time of a thread that is new counts.
            self.look(&threads_of(processes), QueueTimes::of, |_| QueueTimes::default());
        }
    }

    /// Returns the times since the beginning, up to the last look. `None` if no thread has used any.
    pub(super) fn times(&self) -> Option<ProcessorTimes> {
        let sum = |of: fn(&QueueTimes) -> Nanos| {
            let each = self.read.values().map(|[first, last]| of(last).since(of(first)));
            each.fold(Nanos::ZERO, Nanos::saturating_add)
        };
        let used_ns = sum(|times| times.used);
        let waited_ns = sum(|times| times.waited);
        (used_ns > Nanos::ZERO).then_some(ProcessorTimes { used_ns, waited_ns })
    }

    fn look(
        &mut self,
        threads: &[(Pid, Tid)],
        read: impl Fn(Pid, Tid) -> Option<QueueTimes>,
        first: impl Fn(QueueTimes) -> QueueTimes,
    ) {
        for &(pid, tid) in threads {
            let Some(now) = read(pid, tid) else { continue };
            let has_room = self.read.len() < MOST_KEPT;
            match self.read.entry((pid, tid)) {
                // Another thread has the id by now.
                Entry::Occupied(mut it) if now.used < it.get()[1].used => {
                    it.insert([QueueTimes::default(), now]);
                }
                Entry::Occupied(mut it) => it.get_mut()[1] = now,
                Entry::Vacant(room) if has_room => _ = room.insert([first(now), now]),
                Entry::Vacant(_) => {}
            }
        }
    }
}

fn threads_of(processes: &[Pid]) -> Vec<(Pid, Tid)> {
    let threads = |pid: &Pid| {
        let pid = *pid;
        cpu_times::threads_of(pid).map(move |tid| (pid, tid))
    };
    processes.iter().flat_map(threads).take(MOST_THREADS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_beginning() {
        let ms = Nanos::from_millis;
        let mut queues = ThreadQueues::default();
        let at = |times: &'static [(u32, u64, u64)]| {
            let threads: Vec<_> = times.iter().map(|it| (Pid(5), Tid(it.0))).collect();
            let read = move |_, tid: Tid| {
                let (_, used, waited) = times.iter().find(|it| it.0 == tid.0)?;
                Some(QueueTimes { used: ms(*used), waited: ms(*waited) })
            };
            (threads, read)
        };
        let (threads, read) = at(&[(5, 900, 800), (6, 70, 60)]);
        queues.look(&threads, read, |now| now);
        assert_eq!(queues.times(), None);
        // One has ended, and one is new.
        let (threads, read) = at(&[(5, 910, 840), (7, 3, 2)]);
        queues.look(&threads, read, |_| QueueTimes::default());
        let times = |used, waited| ProcessorTimes { used_ns: ms(used), waited_ns: ms(waited) };
        assert_eq!(queues.times(), Some(times(13, 42)));
        // A later thread has the id of one that has ended.
        let (threads, read) = at(&[(6, 20, 5)]);
        queues.look(&threads, read, |_| QueueTimes::default());
        assert_eq!(queues.times(), Some(times(33, 47)));
    }
}
