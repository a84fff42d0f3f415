//! What programs may have of the thread that answers: places to wait, and memory.
//!
//! What ctrace writes to a program's file is memory that the kernel charges to ctrace, for as long as the
//! program keeps the file. So the answers of a session have a limit.

use ctrace_core::{tables::may_wait, units::Pid};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// Bytes that are written for one process, and for all of a session.
const MOST_BYTES_OF_PROCESS: u64 = 256 << 20;
const MOST_BYTES: u64 = 1 << 30;
/// The kernel gives memory by pages.
const PAGE: u64 = 4096;

#[derive(Debug, Default)]
struct Used {
    waiting: Vec<Pid>,
    written: HashMap<Pid, u64>,
    refused: Refused,
}

/// The requests that got no tables because of the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Those that got no answer: too many waited.
    pub(crate) unanswered: u64,
    /// Those for which there was no more memory.
    pub(crate) too_much: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Limits(Arc<Mutex<Used>>);

/// A place of a request, until it is dropped.
pub(super) struct Place {
    limits: Limits,
    pid: Pid,
}

impl Limits {
    /// Takes a place, if there is one for this process.
    pub(super) fn enter(&self, pid: Pid) -> Option<Place> {
        self.with(|used| {
            let fits = may_wait(pid, used.waiting.iter().copied());
            match fits {
                true => used.waiting.push(pid),
                false => used.refused.unanswered += 1,
            }
            fits.then(|| Place { limits: self.clone(), pid })
        })
    }

    /// Returns whether so many bytes may be written for a process, and counts them if so.
    pub(super) fn may_write(&self, pid: Pid, bytes: usize) -> bool {
        let bytes = (bytes as u64).next_multiple_of(PAGE);
        self.with(|used| {
            let all: u64 = used.written.values().sum();
            let of_process = used.written.get(&pid).copied().unwrap_or(0);
            let fits = of_process + bytes <= MOST_BYTES_OF_PROCESS && all + bytes <= MOST_BYTES;
            match fits {
                true => *used.written.entry(pid).or_default() += bytes,
                false => used.refused.too_much += 1,
            }
            fits
        })
    }

    pub(super) fn refused(&self) -> Refused {
        self.with(|used| used.refused)
    }

    fn with<T>(&self, what: impl FnOnce(&mut Used) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.limits.with(|used| {
            if let Some(at) = used.waiting.iter().position(|pid| *pid == self.pid) {
                used.waiting.swap_remove(at);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_four_places_and_others_have_theirs() {
        let limits = Limits::default();
        let mut of_first: Vec<_> = (0..100).filter_map(|_| limits.enter(Pid(1))).collect();
        assert_eq!((of_first.len(), limits.refused().unanswered), (4, 96));
        let others: Vec<_> = (2..50).filter_map(|pid| limits.enter(Pid(pid))).collect();
        assert_eq!(others.len(), 12, "16 in all");
        assert!(limits.enter(Pid(99)).is_none());
        of_first.pop();
        let place = limits.enter(Pid(99));
        assert!(place.is_some(), "a place is free once its request is answered");
        assert!(limits.enter(Pid(1)).is_none(), "no place is free");
    }

    #[test]
    fn memory_for_a_process_and_for_all_has_a_limit() {
        let limits = Limits::default();
        let answers = |pid| (0..).take_while(|_| limits.may_write(Pid(pid), 15 << 20)).count();
        assert_eq!([1, 2, 3, 4].map(answers), [17; 4]);
        assert_eq!(answers(5), 0, "four processes have nearly all");
        assert_eq!(limits.refused(), Refused { unanswered: 0, too_much: 5 });
        assert!(limits.may_write(Pid(1), 1), "a small one still fits");
    }

    #[test]
    fn every_answer_counts_as_whole_pages() {
        let limits = Limits::default();
        let answers = (0..).take_while(|_| limits.may_write(Pid(1), 1)).count();
        assert_eq!(answers as u64, MOST_BYTES_OF_PROCESS / PAGE);
    }
}
