//! The addresses among values that are named once the target's memory map is looked at: a recording
//! outlives the process.

use crate::function::FunctionInfo;
use crate::locks;
use crate::units::{FuncId, Pid};
use crate::values::RingPayload;
use std::collections::HashSet;

/// Addresses of locks that get names, at most, and as many of code. Further ones are shown as numbers.
const MOST: usize = 65_536;

/// What is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Lock,
    Code,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// The places of addresses among the values of each function.
    places: Vec<Vec<(usize, Kind)>>,
    /// A large number of locks must not leave the code without names.
    known_locks: HashSet<(Pid, u64)>,
    known_code: HashSet<(Pid, u64)>,
    new: Vec<(Pid, u64)>,
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

    pub(crate) fn are_wanted(&self) -> bool {
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
            let of = (payload.pid, address);
            let known = match kind {
                Kind::Lock => &mut self.known_locks,
                Kind::Code => &mut self.known_code,
            };
            if known.len() == MOST {
                self.beyond |= !known.contains(&of);
            } else if known.insert(of) {
                self.new.push(of);
            }
        }
    }

    pub(crate) fn take_new(&mut self) -> Vec<(Pid, u64)> {
        std::mem::take(&mut self.new)
    }

    /// Returns whether some addresses stay without names because there are too many.
    pub(crate) fn are_too_many(&self) -> bool {
        self.beyond
    }
}
