//! The names that markers tell of locks.

use crate::locks::event::{LockId, number};
use crate::locks::{ledger::MOST_LOCKS, naming};
use crate::recording::{AddressNames, AddressRecord, Payload, Recording};
use crate::units::Pid;
use crate::values::Value;
use std::sync::Arc;

/// See the module.
pub(super) struct LockNames<'a> {
    recording: &'a Recording,
    /// The places of a lock and its name among the values of each function.
    places: Vec<Option<(usize, usize)>>,
    names: AddressNames,
}

impl<'a> LockNames<'a> {
    pub(super) fn new(recording: &'a Recording) -> Self {
        let places = recording.functions().iter().map(naming).collect();
        Self { recording, places, names: AddressNames::default() }
    }

    /// Notes the names that calls of a chunk tell.
    pub(super) fn note(&mut self, payloads: &[Payload]) {
        let places = |of: &Payload| self.places.get(of.function.index()).copied().flatten();
        let told = payloads.iter().filter_map(|payload| Some((payload, places(payload)?)));
        let mut told: Vec<_> = told.collect();
        told.sort_by_key(|(payload, _)| (payload.time, payload.thread));
        told.into_iter().for_each(|(payload, places)| self.add(payload, places));
    }

    fn add(&mut self, payload: &Payload, (lock, name): (usize, usize)) {
        let value = |place: usize| payload.values.get(place)?.as_ref();
        if let Some(address) = value(lock).and_then(number)
            && let Some(Value::Text(name)) = value(name)
            && !name.bytes().is_empty()
            && self.names.len() < MOST_LOCKS
        {
            let thread = self.recording.thread(payload.thread);
            let pid = thread.map_or(Pid(0), |thread| thread.pid);
            let name = name.to_string().into();
            self.names.add(AddressRecord { pid, address: address as u64, name });
        }
    }

    /// Returns the name of a lock: that of a marker, else that of its address.
    pub(super) fn of(&self, LockId { pid, address }: LockId) -> Arc<str> {
        let told = self.names.name(pid, address);
        told.unwrap_or_else(|| self.of_address(pid, address))
    }

    pub(super) fn of_address(&self, pid: Pid, address: u64) -> Arc<str> {
        let known = self.recording.address_name(pid, address);
        known.unwrap_or_else(|| format!("{address:#x}").into())
    }
}
