//! The names of locks, and of the code that takes them: a recording outlives the processes that have them.

use super::Session;
use crate::target::{
    addresses::NamedAddress,
    process::{Process, maps::MappedObject},
};
use ctrace_core::{recording::AddressRecord, units::Pid};
use std::collections::BTreeSet;

impl Session {
    /// Notes which objects a process has, and where.
    pub(super) fn learn_addresses(&mut self, pid: Pid, objects: &[MappedObject]) {
        if self.engine.follows_locks() {
            self.addresses.learn(pid, objects);
        }
    }

    /// Names the addresses that have come since the last time.
    pub(super) fn name_addresses(&mut self) {
        let new = self.engine.take_new_addresses();
        if new.is_empty() {
            return;
        }
        for pid in new.iter().map(|(pid, _)| *pid).collect::<BTreeSet<_>>() {
            if !self.addresses.knows(pid)
                && let Ok(process) = Process::open(pid.0)
                && let Ok(objects) = process.objects()
            {
                self.addresses.learn(pid, &objects);
            }
        }
        let named = self.addresses.name(new).into_iter();
        let record =
            |NamedAddress { pid, address, name }| AddressRecord { pid, address, name: name.into() };
        self.engine.name_addresses(named.map(record).collect());
    }
}
