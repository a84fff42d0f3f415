//! Remembers for a moment where living tracers have probes in all processes.
//!
//! To find out takes a second and more. A server has a hundred processes with the same breakpoints, and
//! those of the first tell of the others.
//!
//! Probes that are perf events count, too. They may concern other processes alone. What is left at such a
//! place stays then, until it is hit: the kernel removes it when no tracer wants to know of the process.
//! So who asks for healing remembers nothing.

use super::look::MarkedFile;
use crate::bpf;
use serde::{Deserialize, Serialize};
use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

/// A tracer may end at any time. What it leaves then is not its own any more.
const FRESH: Duration = Duration::from_secs(5);
/// Limit of places that are remembered.
const MOST: usize = 65_536;

/// A file, by its device and inode, and an offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(super) identity: (u64, u64),
    pub(super) offset: u64,
}

/// Places where living tracers have probes.
#[derive(Debug, Default)]
pub(crate) struct InUse {
    places: HashSet<Place>,
    /// The time when the first of them was found.
    since: Option<Instant>,
    /// True if perf events were looked for since then.
    has_events: bool,
}

impl InUse {
    pub(super) fn add(&mut self, places: impl IntoIterator<Item = Place>) {
        self.forget_old(Instant::now());
        let room = MOST.saturating_sub(self.places.len());
        self.places.extend(places.into_iter().take(room));
        if !self.places.is_empty() {
            self.since.get_or_insert_with(Instant::now);
        }
    }

    /// Adds the places of perf events.
    pub(super) fn add_events(&mut self) {
        self.forget_old(Instant::now());
        if !self.has_events {
            let events = bpf::event_places().into_iter();
            self.since.get_or_insert_with(Instant::now);
            self.add(events.map(|(identity, offset)| Place { identity, offset }));
            self.has_events = true;
        }
    }

    /// Takes the places out of the findings, and returns their number.
    pub(super) fn leave_out(&mut self, files: &mut [MarkedFile]) -> u64 {
        self.forget_old(Instant::now());
        let mut known = 0;
        for marked in files {
            let before = marked.places.len();
            let identity = marked.identity;
            marked
                .places
                .retain(|offset| !self.places.contains(&Place { identity, offset: *offset }));
            known += (before - marked.places.len()) as u64;
        }
        known
    }

    fn forget_old(&mut self, now: Instant) {
        if self.since.is_some_and(|since| now.duration_since(since) >= FRESH) {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn marked(identity: (u64, u64), places: &[u64]) -> MarkedFile {
        MarkedFile {
            path: "/x".into(),
            file: tempfile::tempfile().unwrap(),
            identity,
            places: places.iter().copied().collect(),
            own: BTreeSet::new(),
            half_written: BTreeSet::new(),
        }
    }

    #[test]
    fn known_places_of_the_same_file_are_left_out_for_a_moment() {
        let mut in_use = InUse::default();
        in_use.add([4, 6].map(|offset| Place { identity: (1, 2), offset }));
        let mut files = [marked((1, 2), &[4, 5, 6]), marked((1, 3), &[4])];
        assert_eq!(in_use.leave_out(&mut files), 2);
        assert_eq!(files.each_ref().map(|it| it.places.clone()), [[5].into(), [4].into()]);
        in_use.forget_old(Instant::now() + FRESH);
        assert_eq!(in_use.leave_out(&mut [marked((1, 2), &[4])]), 0);
    }
}
