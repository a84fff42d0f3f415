//! Names of addresses in the memory of processes.

use super::reader::Recording;
use crate::names::cut;
use crate::units::Pid;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// An address in the memory of a process, and what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressRecord {
    /// The process.
    pub pid: Pid,
    /// The address.
    pub address: u64,
    /// The symbol there, with the name of its object.
    pub name: Arc<str>,
}

/// The names of a recording. A process that executes another program may have something else at an
/// address: then it has two.
#[derive(Debug, Default)]
pub(crate) struct AddressNames(HashMap<(Pid, u64), Known>);

#[derive(Debug)]
struct Known {
    first: Arc<str>,
    later: Option<Arc<str>>,
    /// True if it had further names, which are not kept.
    has_more: bool,
}

impl AddressNames {
    pub(crate) fn add(&mut self, AddressRecord { pid, address, name }: AddressRecord) {
        const LONGEST: usize = 4_096;
        // No longer name is written.
        let name = if name.len() > LONGEST { cut(&name, LONGEST).into() } else { name };
        match self.0.entry((pid, address)) {
            Entry::Vacant(entry) => {
                _ = entry.insert(Known { first: name, later: None, has_more: false })
            }
            Entry::Occupied(mut entry) => entry.get_mut().add(name),
        }
    }

    /// Returns the name of an address in the memory of a process, if it has one.
    pub(crate) fn name(&self, pid: Pid, address: u64) -> Option<Arc<str>> {
        let Known { first, later, has_more } = self.0.get(&(pid, address))?;
        Some(match later {
            Some(later) if *has_more => format!("{first}, later {later} and others").into(),
            Some(later) => format!("{first}, later {later}").into(),
            None => Arc::clone(first),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds those of a later recording.
    pub(super) fn extend(&mut self, later: Self) {
        for ((pid, address), known) in later.0 {
            for name in std::iter::once(known.first).chain(known.later) {
                self.add(AddressRecord { pid, address, name });
            }
            if known.has_more
                && let Some(own) = self.0.get_mut(&(pid, address))
            {
                own.has_more = true;
            }
        }
    }
}

impl Known {
    fn add(&mut self, name: Arc<str>) {
        if self.first != name {
            let later = self.later.get_or_insert_with(|| Arc::clone(&name));
            self.has_more |= *later != name;
        }
    }
}

impl Recording {
    /// Returns the name of an address in the memory of a process, if it is one of a call's values.
    pub(crate) fn address_name(&self, pid: Pid, address: u64) -> Option<Arc<str>> {
        self.addresses.name(pid, address)
    }
}
