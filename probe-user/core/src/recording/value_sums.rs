//! Sums of calls by a value of theirs, while the calls happen: blocks in, sums out.

use super::{Block, Payload, RecordError, Recording, Start};
use crate::function::FunctionInfo;
use crate::units::{FuncId, Nanos, ThreadId};
use crate::values::Value;
use std::collections::HashMap;

/// Values that are told apart until sums are taken.
const MOST_APART: usize = 4_096;

/// The value by which a call is told apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CallValue {
    /// The value itself.
    Known(Value),
    /// There were too many others before.
    Other,
    /// It could not be read.
    Unread,
    /// It was lost, or the call has none.
    Lost,
}

/// The calls of a function with one value, and the sum of their durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueSum {
    /// Calls that have ended.
    pub calls: u64,
    /// As far as it is known how long they took.
    pub total: Nanos,
}

impl ValueSum {
    /// Adds further calls.
    pub fn add(&mut self, more: &Self) {
        self.calls = self.calls.saturating_add(more.calls);
        self.total = self.total.saturating_add(more.total);
    }
}

/// Chooses functions.
type IsWanted = Box<dyn Fn(&FunctionInfo) -> bool + Send>;

/// The sums of some functions by their value of one name.
pub struct ValueSums {
    recording: Recording,
    is_wanted: IsWanted,
    name: Box<str>,
    /// The place of the value, by function; `None` for functions that are not wanted or have none.
    places: Vec<Option<usize>>,
    sums: HashMap<(FuncId, CallValue), ValueSum>,
}

impl ValueSums {
    /// Makes sums of the functions that are wanted, by their value of this name.
    pub fn new(name: &str, is_wanted: impl Fn(&FunctionInfo) -> bool + Send + 'static) -> Self {
        Self {
            recording: Recording::begun(Start::default()),
            is_wanted: Box::new(is_wanted),
            name: name.into(),
            places: Vec::new(),
            sums: HashMap::new(),
        }
    }

    /// Adds the calls of the next block of an engine.
    pub fn take(&mut self, block: &Block) -> Result<(), RecordError> {
        let Some((chunk, payloads)) = self.recording.grow(block)? else { return Ok(()) };
        let new = &self.recording.functions()[self.places.len()..];
        let place = |function: &FunctionInfo| {
            let place = function.values.iter().position(|value| *value.name == *self.name);
            place.filter(|_| (self.is_wanted)(function))
        };
        self.places.extend(new.iter().map(place).collect::<Vec<_>>());
        let place_of = |function: FuncId| self.places.get(function.index()).copied().flatten();
        let wanted = payloads.each.iter().filter(|of| place_of(of.function).is_some());
        let values: HashMap<(ThreadId, u64, FuncId), &Payload> =
            wanted.map(|of| ((of.thread, of.time.0, of.function), of)).collect();
        for thread in chunk.threads() {
            for call in chunk.calls(thread) {
                let function = self.recording.nodes()[call.path() as usize].func;
                let Some(place) = place_of(function) else { continue };
                let value = match values.get(&(thread.thread, call.start().0, function)) {
                    Some(of) if of.absent >> place & 1 == 1 => CallValue::Lost,
                    Some(of) => match of.values.get(place) {
                        Some(Some(value)) => CallValue::Known(value.clone()),
                        _ => CallValue::Unread,
                    },
                    None => CallValue::Lost,
                };
                let key = match (function, value) {
                    key if self.sums.len() < MOST_APART || self.sums.contains_key(&key) => key,
                    (_, CallValue::Known(_)) => (function, CallValue::Other),
                    key => key,
                };
                let sum = ValueSum { calls: 1, total: call.duration() };
                self.sums.entry(key).or_default().add(&sum);
            }
        }
        self.recording.forget(block.ended.iter().copied());
        Ok(())
    }

    /// Returns the sums since the last time, each with its function.
    pub fn drain(&mut self) -> impl Iterator<Item = (&FunctionInfo, CallValue, ValueSum)> {
        let functions = self.recording.functions();
        let sums = std::mem::take(&mut self.sums).into_iter();
        sums.filter_map(|((function, value), sum)| {
            Some((functions.get(function.index())?, value, sum))
        })
    }
}
