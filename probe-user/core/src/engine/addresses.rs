//! The addresses among values that are named once the target's memory map is looked at: a recording
//! outlives the process.

use super::Engine;
use crate::function::FunctionInfo;
use crate::locks;
use crate::recording::AddressRecord;
use crate::units::{FuncId, Pid};
use crate::values::RingPayload;
use std::collections::{HashMap, HashSet};

/// Addresses of locks that get names at once, at most, and as many of code. Further ones are shown as
/// numbers.
const MOST: usize = 65_536;
/// Names that a trace gives, at most, also to what ended programs had.
const MOST_NAMES: usize = 1 << 18;

/// The object at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A large number of locks must not leave the code without names.
    Lock,
    Code,
}

/// Addresses that are to be named.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NewAddresses {
    /// Addresses in programs that run, by process.
    pub running: HashMap<Pid, Vec<u64>>,
    /// The same of processes that have executed another program since, or have ended.
    pub left: HashMap<Pid, LeftAddresses>,
}

/// The addresses of programs that a process runs no more: no later memory map has them. Of several that
/// it has executed, those in between stay without names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LeftAddresses {
    /// Addresses in the program that it ran first, if it has executed another one.
    pub former: Option<Vec<u64>>,
    /// Addresses in the program with which it has ended, if it has.
    pub last: Option<Vec<u64>>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// The places of addresses among the values of each function.
    places: Vec<Vec<(usize, Kind)>>,
    /// By kind.
    known: HashMap<Pid, [HashSet<u64>; 2]>,
    numbers: [usize; 2],
    names: usize,
    new: NewAddresses,
    beyond: bool,
}

impl Addresses {
    /// Adds the next function.
    pub(crate) fn add_function(&mut self, info: &FunctionInfo) {
        let is_lock = locks::function_of(info).is_some();
        let kind = |name: &str| match name {
            locks::LOCK => Some(Kind::Lock),
            locks::CALLER => Some(Kind::Code),
            _ => None,
        };
        let values = info.values.iter().enumerate().filter(|_| is_lock);
        let places = values.filter_map(|(place, value)| Some((place, kind(&value.name)?)));
        self.places.push(places.collect());
    }

    fn are_wanted(&self) -> bool {
        self.places.iter().any(|places| !places.is_empty())
    }

    /// Returns whether a function has addresses among its values.
    pub(crate) fn are_of(&self, function: FuncId) -> bool {
        self.places.get(function.index()).is_some_and(|places| !places.is_empty())
    }

    /// Notes the addresses of a call.
    pub(crate) fn note(&mut self, payload: &RingPayload) {
        let places = self.places.get(payload.function.index()).filter(|_| !payload.is_result());
        for (place, kind) in places.into_iter().flatten() {
            let Some(address) = payload.word(*place) else { continue };
            let (pid, kind) = (payload.pid, *kind as usize);
            let known = &mut self.known.entry(pid).or_default()[kind];
            if self.numbers[kind] == MOST || self.names == MOST_NAMES {
                self.beyond |= !known.contains(&address);
            } else if known.insert(address) {
                self.numbers[kind] += 1;
                self.names += 1;
                self.new.running.entry(pid).or_default().push(address);
            }
        }
    }

    /// Forgets what a process had, which has executed another program or has ended.
    pub(crate) fn leave(&mut self, pid: Pid, has_ended: bool) {
        if !self.are_wanted() {
            return;
        }
        for (number, known) in self.numbers.iter_mut().zip(self.known.remove(&pid).iter().flatten())
        {
            *number -= known.len();
        }
        let addresses = self.new.running.remove(&pid).unwrap_or_default();
        let left = self.new.left.entry(pid).or_default();
        match has_ended {
            _ if left.last.is_some() => {}
            true => left.last = Some(addresses),
            false => _ = left.former.get_or_insert(addresses),
        }
    }
}

impl Engine {
    /// Returns whether a function was added by whose values locks are followed.
    pub fn follows_locks(&self) -> bool {
        self.tracker.addresses.are_wanted()
    }

    /// Returns the addresses that are new among the values by which locks are followed: those of locks,
    /// and of the code that takes them.
    pub fn take_new_addresses(&mut self) -> NewAddresses {
        std::mem::take(&mut self.tracker.addresses.new)
    }

    /// Returns whether some of these stay without names because there are too many.
    pub fn has_too_many_addresses(&self) -> bool {
        self.tracker.addresses.beyond
    }

    /// Names such addresses in a recording.
    pub fn name_addresses(&mut self, names: Vec<AddressRecord>) {
        if let Some(recorder) = &mut self.tracker.recorder {
            recorder.name_addresses(names);
        }
    }
}
