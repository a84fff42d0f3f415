//! Parts of what the eBPF programs have counted: the calls of one function with each value of an argument,
//! and what these called.
//!
//! A value is a part of a path, so each part has paths of its own. What is a part of several values, where
//! the function calls itself, belongs to all of them.

use super::{CountedApart, CountedCalls, CountedSums};
use crate::engine::{Engine, EngineConfig, ReportMeta};
use crate::function::ValueInfo;
use crate::report::Report;
use crate::units::{FuncId, Nanos};
use crate::values::{Value, counted_value};
use ctrace_common::{CountedValue, NO_VALUE, OTHER_VALUES, UNREAD_VALUE};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Counts of calls that are counted apart by a value.
pub trait ValuedCalls: CountedCalls {
    /// Returns the number of the value with which the function of a path is called.
    fn value_number(&self, path: u32) -> u32;
    fn value(&self, number: u32) -> CountedValue;
}

/// A part: the calls with one value, or with some.
#[derive(Clone, Debug)]
pub struct CountedPart {
    /// `None`: all others together, or those that could not be read.
    pub value: Option<Value>,
    pub is_unread: bool,
    numbers: BTreeSet<u32>,
}

/// The calls of a function, apart by a value.
#[derive(Clone, Debug)]
pub struct CountedParts {
    /// The values that took the most time, then the others, then those that could not be read.
    pub each: Vec<CountedPart>,
    /// The number of finished calls of which the value is not known: they have no path.
    pub without: u64,
    /// The number of finished calls with values that found no room. They are among the others.
    pub beyond: u64,
    /// By path, from number 1 on: the values of all calls of the function on it.
    values: Vec<BTreeSet<u32>>,
}

impl CountedParts {
    /// Tells the calls of a function apart by the value of its first argument that is read. `most` values
    /// have parts of their own.
    pub fn of(calls: &impl ValuedCalls, function: FuncId, info: &ValueInfo, most: usize) -> Self {
        let mut values = Vec::<BTreeSet<u32>>::new();
        let mut ended = BTreeMap::<u32, (u64, u64)>::new();
        let mut with_calls = BTreeSet::new();
        let mut without = calls.apart(function).unplaced;
        while let Some((caller, of)) = calls.path(values.len() as u32 + 1) {
            let number = values.len() as u32 + 1;
            let around = (caller as usize).checked_sub(1).and_then(|caller| values.get(caller));
            let mut on_path = around.cloned().unwrap_or_default();
            let CountedSums { timed, timed_ns, untimed, untimed_ns, .. } = calls.sums(number);
            if of == function {
                match calls.value_number(number) {
                    NO_VALUE => without += timed + untimed,
                    value => {
                        let sums = ended.entry(value).or_default();
                        sums.0 = sums.0.saturating_add(timed_ns).saturating_add(untimed_ns);
                        sums.1 += timed + untimed;
                        on_path.insert(value);
                    }
                }
            }
            if timed + untimed > 0 {
                with_calls.extend(on_path.iter().copied());
            }
            values.push(on_path);
        }
        // A call that has not ended may have calls inside it that have.
        ended.retain(|value, _| with_calls.contains(value));
        let beyond = ended.get(&OTHER_VALUES).map_or(0, |(_, calls)| *calls);
        let each = parts(calls, info, &ended, most);
        Self { each, without, beyond, values }
    }

    /// Returns the counts of one part only.
    fn only<'a, C>(&'a self, part: &'a CountedPart, calls: &'a C) -> Only<'a, C> {
        Only { calls, all: self, part }
    }

    fn of_path(&self, path: u32) -> Option<&BTreeSet<u32>> {
        (path as usize).checked_sub(1).and_then(|path| self.values.get(path))
    }
}

/// Returns the parts. `ended`: by number of the value, the time and the number of its calls.
fn parts(
    calls: &impl ValuedCalls,
    info: &ValueInfo,
    ended: &BTreeMap<u32, (u64, u64)>,
    most: usize,
) -> Vec<CountedPart> {
    let mut by_value = BTreeMap::<Value, (u64, u64, BTreeSet<u32>)>::new();
    let (mut others, mut unread) = (BTreeSet::new(), BTreeSet::new());
    for (&number, &(time, count)) in ended {
        let value = match number {
            OTHER_VALUES => {
                others.insert(number);
                continue;
            }
            UNREAD_VALUE => None,
            _ => counted_value(info, &calls.value(number)),
        };
        let Some(value) = value else {
            unread.insert(number);
            continue;
        };
        // Several numbers may mean the same: all but 0 are true.
        let (all_time, all_calls, numbers) = by_value.entry(value).or_default();
        *all_time = all_time.saturating_add(time);
        *all_calls = all_calls.saturating_add(count);
        numbers.insert(number);
    }
    let mut by_value: Vec<_> = by_value.into_iter().collect();
    by_value.sort_by_key(|(_, (time, calls, _))| Reverse((*time, *calls)));
    let rest = by_value.split_off(most.min(by_value.len()));
    others.extend(rest.into_iter().flat_map(|(_, (.., numbers))| numbers));
    let own = by_value.into_iter().map(|(value, (.., numbers))| CountedPart {
        value: Some(value),
        is_unread: false,
        numbers,
    });
    let shared = [(others, false), (unread, true)].into_iter();
    let shared = shared.filter(|(numbers, _)| !numbers.is_empty());
    own.chain(shared.map(|(numbers, is_unread)| CountedPart { value: None, is_unread, numbers }))
        .collect()
}

/// The counts of the paths of one part. Paths begin with the function.
struct Only<'a, C> {
    calls: &'a C,
    all: &'a CountedParts,
    part: &'a CountedPart,
}

impl<C: CountedCalls> CountedCalls for Only<'_, C> {
    fn path(&self, number: u32) -> Option<(u32, FuncId)> {
        let (caller, function) = self.calls.path(number)?;
        let is_inside = self.all.of_path(caller).is_some_and(|values| !values.is_empty());
        // There may be more by now.
        (number as usize <= self.all.values.len())
            .then_some((if is_inside { caller } else { 0 }, function))
    }

    fn sums(&self, path: u32) -> CountedSums {
        let values = self.all.of_path(path);
        let is_part = values.is_some_and(|values| !values.is_disjoint(&self.part.numbers));
        if is_part { self.calls.sums(path) } else { CountedSums::default() }
    }

    fn buckets(&self, path: u32) -> Vec<u32> {
        self.calls.buckets(path)
    }

    /// Calls that are not on a path are in no part.
    fn apart(&self, _: FuncId) -> CountedApart {
        CountedApart::default()
    }
}

impl Engine {
    /// Reports a part of what the programs have counted in this time, which is since the start.
    pub fn report_counted_part(
        &self,
        calls: &impl CountedCalls,
        (all, part): (&CountedParts, &CountedPart),
        Range { start, end }: Range<Nanos>,
        meta: ReportMeta,
    ) -> Report {
        let mut engine = Self::new(EngineConfig { start, ..EngineConfig::default() });
        for function in self.functions() {
            engine.add_function(function.clone());
        }
        engine.set_lost_events(self.lost_events, self.lost_marks);
        engine.take_counted(&all.only(part, calls));
        engine.report(end, meta)
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
