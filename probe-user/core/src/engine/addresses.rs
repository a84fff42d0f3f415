//! The addresses among values that are named once the target's memory map is looked at: a recording
//! outlives the process.

use crate::function::FunctionInfo;
use crate::locks;
use crate::units::Pid;
use crate::values::RingPayload;
use std::collections::HashSet;

/// Addresses that get names, at most. Further ones are shown as numbers.
const MOST: usize = 65_536;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    /// The places of addresses among the values of each function.
    places: Vec<Vec<usize>>,
    known: HashSet<(Pid, u64)>,
    new: Vec<(Pid, u64)>,
}

impl Addresses {
    /// Adds the next function.
    pub(crate) fn add_function(&mut self, info: &FunctionInfo) {
        let is_lock = locks::function_of(info).is_some();
        let is_address = |name: &str| is_lock && (name == locks::LOCK || name == locks::CALLER);
        let values = info.values.iter().enumerate();
        let places = values.filter(|(_, value)| is_address(&value.name)).map(|(place, _)| place);
        self.places.push(places.collect());
    }

    pub(crate) fn are_wanted(&self) -> bool {
        self.places.iter().any(|places| !places.is_empty())
    }

    /// Notes the addresses of a call.
    pub(crate) fn note(&mut self, payload: &RingPayload) {
        let places = self.places.get(payload.function.index()).filter(|_| !payload.is_result());
        for place in places.into_iter().flatten() {
            let Some(address) = payload.word(*place) else { continue };
            let of = (payload.pid, address);
            if self.known.len() < MOST && self.known.insert(of) {
                self.new.push(of);
            }
        }
    }

    pub(crate) fn take_new(&mut self) -> Vec<(Pid, u64)> {
        std::mem::take(&mut self.new)
    }
}
