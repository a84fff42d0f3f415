//! The names of locks, and of the code that takes them: a recording outlives the processes that have them.

use super::Session;
use crate::{
    bpf,
    target::{
        addresses::{AddressNames, NamedAddress},
        process::{Process, maps::MappedObject},
        read::budget::ObjectLimits,
    },
};
use ctrace_core::{
    engine::NewAddresses,
    ingest::change::ProcessEvent,
    recording::AddressRecord,
    units::{Nanos, Pid},
};
use std::time::{Duration, Instant};

/// The least time between two looks into objects, for all addresses that came meanwhile.
const PAUSE: Duration = Duration::from_secs(2);
/// The least time between two looks at maps for addresses that are in no object: most are on a heap.
const PAUSE_OF_MAPS: Duration = Duration::from_secs(1);

/// The names, and when they were looked for.
pub(super) struct Naming {
    names: AddressNames,
    named: Option<Instant>,
    mapped: Option<Instant>,
    has_told: bool,
}

impl Naming {
    pub(super) fn within(limits: ObjectLimits) -> Self {
        let names = AddressNames::within(limits);
        Self { names, named: None, mapped: None, has_told: false }
    }
}

/// Returns whether a time is over since this was done, and notes that it is done again.
fn is_due(done: &mut Option<Instant>, pause: Duration) -> bool {
    let is_due = done.is_none_or(|done| done.elapsed() >= pause);
    if is_due {
        *done = Some(Instant::now());
    }
    is_due
}

impl Session {
    /// Notes which objects a process has, and where, as it was looked at at this time.
    pub(super) fn learn_addresses(&mut self, pid: Pid, time: Nanos, objects: &[MappedObject]) {
        if self.engine.follows_locks() {
            self.naming.names.learn(pid, time, objects);
        }
    }

    /// Notes the addresses that have come since the last time, and names them now and then.
    pub(super) fn look_at_addresses(&mut self) {
        self.take_addresses();
        if self.engine.follows_locks() && is_due(&mut self.naming.named, PAUSE) {
            self.name_addresses();
        }
    }

    /// Names all addresses that have come.
    pub(super) fn name_last_addresses(&mut self) {
        self.take_addresses();
        self.name_addresses();
        if self.engine.has_too_many_addresses() {
            self.notes.add_in_any_case(
                "there are too many locks, or calls of them, to name them all: further ones \
                 are shown by their addresses"
                    .to_owned(),
            );
        }
    }

    /// Notes that a process has executed another program: what it has mapped from now on is of that one.
    pub(super) fn note_executed(&mut self, event: &ProcessEvent) {
        // The engine tells of no earlier one.
        if self.engine.follows_locks() && event.time >= self.progress.start {
            self.naming.names.execute(event.pid, event.time);
        }
    }

    /// Notes that a process has begun with the memory of its parent.
    pub(super) fn note_forked(&mut self, parent: Pid, child: Pid) {
        if self.engine.follows_locks() {
            self.naming.names.inherit(parent, child);
        }
    }

    fn take_addresses(&mut self) {
        let NewAddresses { running, left } = self.engine.take_new_addresses();
        let names = &mut self.naming.names;
        left.iter().for_each(|(pid, left)| names.leave(*pid, left));
        let mut outside = Vec::new();
        for (pid, addresses) in running {
            outside.extend(names.add(pid, addresses).then_some(pid));
        }
        if outside.is_empty() || !is_due(&mut self.naming.mapped, PAUSE_OF_MAPS) {
            return;
        }
        for pid in outside {
            let time = bpf::now();
            if let Ok(process) = Process::open(pid.0)
                && let Ok(objects) = process.objects()
            {
                self.naming.names.learn(pid, time, &objects);
            }
        }
    }

    fn name_addresses(&mut self) {
        if self.naming.names.are_exhausted() {
            if !std::mem::replace(&mut self.naming.has_told, true) {
                self.notes.add_in_any_case(
                    "naming locks and their callers took more time or memory than it may, so \
                     further ones are shown by their addresses: allow more with --max-object-time and \
                     --max-object-memory"
                        .to_owned(),
                );
            }
            return;
        }
        let named = self.naming.names.name().into_iter();
        let record =
            |NamedAddress { pid, address, name }| AddressRecord { pid, address, name: name.into() };
        self.engine.name_addresses(named.map(record).collect());
    }
}
