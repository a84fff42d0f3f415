//! Payloads in a recording: a separate block behind the chunk of their calls.
//!
//! The index does not list the block, and readers without payload support skip it. The names and
//! types of a function's values are in the function's definition. A block in which all values are
//! integers has a kind of its own, for readers that know no other types. So has one with long texts,
//! which earlier readers refuse.

use super::RecordError;
use super::block::{Block, BlockKind, MAX_CHUNK};
use super::varint::{put, take, take_count, take_u32};
use crate::function::{FunctionInfo, ValueInfo, ValueKind};
use crate::report::CallValues;
use crate::units::{FuncId, Nanos, ThreadId};
use crate::values::{Float, RingPayload, Text, Value};
use ctrace_common::MAX_VALUES;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The limit of payloads in a chunk: ctrace writes no more, and a file with more is refused.
pub(crate) const MOST_PAYLOADS: usize = 1 << 17;
/// Payloads that wait for their chunk, at most. A call has up to two, one for each of its ends.
pub(crate) const MOST_HELD: usize = 2 * MOST_PAYLOADS;

/// The limit of the [cost](texts_cost) of a chunk's texts.
pub(crate) const MOST_TEXTS: usize = 12 << 20;
/// The cost of a text beside its bytes: about the memory that it takes.
const COST_OF_TEXT: usize = 16;

/// The limit of a payload's bytes without texts: time, function, missing values, and as much for its
/// thread.
const MOST_OF_PAYLOAD: usize = 10 + 5 + 4 + 10 * MAX_VALUES + 10;
// What the engine holds fits into a block that is read again.
const _: () = assert!(MOST_PAYLOADS * MOST_OF_PAYLOAD + MOST_TEXTS < MAX_CHUNK as usize);

/// The number of payloads that a block may have however few its bytes are: a small file must not take long to
/// read.
const FREE: usize = 1 << 10;
const IN_A_BYTE: usize = 16;

/// The lowest bit, among those of missing values, for values that there are none of.
const ABSENT: u32 = 16;

/// The values of a chunk's calls, by thread, start and function.
pub(crate) type ValuesByCall = HashMap<(ThreadId, u64, FuncId), CallValues>;

/// A payload from a ring, its thread, and the start of its call.
#[derive(Clone, Debug)]
pub(crate) struct OfThread {
    pub(crate) thread: ThreadId,
    pub(crate) start: Nanos,
    pub(crate) payload: RingPayload,
}

impl OfThread {
    pub(crate) fn texts_cost(&self) -> usize {
        let (texts, bytes) = self.payload.texts();
        texts_cost(texts, bytes)
    }

    /// Returns the number of the call. Its payloads, of both its ends, have the same one.
    fn call(&self) -> (ThreadId, Reverse<Nanos>, FuncId) {
        (self.thread, Reverse(self.start), self.payload.function)
    }

    /// Returns true if the next one is the result of the same call.
    fn is_followed_by(&self, next: &Self) -> bool {
        self.call() == next.call() && !self.payload.is_result() && next.payload.is_result()
    }
}

fn texts_cost(texts: usize, bytes: usize) -> usize {
    texts * COST_OF_TEXT + bytes
}

/// The values of one call, in the order of the function's [`values`](FunctionInfo::values).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The thread that made the call.
    pub thread: ThreadId,
    /// The time at which the call began.
    pub time: Nanos,
    /// The function that was called.
    pub function: FuncId,
    /// The values; `None` for those that could not be read, and those that are absent.
    pub values: Vec<Option<Value>>,
    /// A bit for each value, the first one's lowest: there is none. A call that was unwound, for
    /// example, has no result.
    pub absent: u16,
}

impl Payload {
    /// Returns the number of values that could not be read.
    pub(crate) fn unread(&self) -> usize {
        let missing = self.values.iter().filter(|value| value.is_none()).count();
        missing.saturating_sub(self.absent.count_ones() as usize)
    }
}

/// The payloads of a chunk's calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payloads {
    /// Payloads by thread, latest first within a thread.
    pub each: Vec<Payload>,
    /// The number of payloads that were lost.
    pub lost: u64,
}

/// Puts payloads in order, and returns those of each call.
pub(crate) fn calls(payloads: &mut [OfThread]) -> impl Iterator<Item = &[OfThread]> {
    payloads.sort_by_key(|of| (of.call(), of.payload.is_result()));
    payloads.chunk_by(OfThread::is_followed_by)
}

/// Returns the block, or `None` if there are no payloads and none were lost.
pub(crate) fn encode(
    mut payloads: Vec<OfThread>,
    lost: u64,
    to: u64,
    functions: &[FunctionInfo],
) -> Option<Block> {
    if payloads.is_empty() && lost == 0 {
        return None;
    }
    let mut calls: Vec<_> = calls(&mut payloads).collect();
    let values_of = |function: FuncId| {
        let info = functions.get(function.index());
        info.map_or(&[][..], |info| &info.values[..info.values.len().min(MAX_VALUES)])
    };
    let payloads = || calls.iter().copied().flatten();
    let kinds = || payloads().flat_map(|of| values_of(of.payload.function)).map(|of| of.kind);
    let kind = if kinds().all(ValueKind::is_integer) {
        BlockKind::Payloads
    } else if kinds().any(|kind| kind == ValueKind::LongText) {
        BlockKind::LongPayloads
    } else {
        BlockKind::TypedPayloads
    };
    let lost = lost.saturating_add(calls.len().saturating_sub(MOST_PAYLOADS) as u64);
    calls.truncate(MOST_PAYLOADS);
    let mut out = Vec::new();
    put(&mut out, to);
    put(&mut out, lost);
    let threads: Vec<_> = calls.chunk_by(|a, b| a[0].thread == b[0].thread).collect();
    put(&mut out, threads.len() as u64);
    for calls in threads {
        put(&mut out, calls[0][0].thread.0.into());
        put(&mut out, calls.len() as u64);
        let mut after = to;
        for ends in calls {
            let OfThread { start, payload: RingPayload { function, .. }, .. } = ends[0];
            put(&mut out, after.wrapping_sub(start.0));
            after = start.0;
            put(&mut out, function.0.into());
            pack_call(&mut out, ends, values_of(function));
        }
    }
    Some(Block::new(kind, out))
}

/// Returns a value that was read. A text that no zero byte ends has the length that came with it.
pub(crate) fn value_of(
    info: &ValueInfo,
    payload: &RingPayload,
    read: Option<Value>,
) -> Option<Value> {
    let length = info.length_at.and_then(|at| payload.word(at.into()));
    match (read, length) {
        (Some(Value::Text(text)), Some(length)) => Some(Value::Text(text.of_length(length))),
        // Nothing tells what of it belongs to the text.
        (Some(Value::Text(_)), None) if info.length_at.is_some() => None,
        (read, _) => read,
    }
}

/// Writes the values of a call, which came at one of its ends, or at both.
fn pack_call(out: &mut Vec<u8>, ends: &[OfThread], infos: &[ValueInfo]) {
    let mut values = vec![None; infos.len()];
    let mut absent = (1_u64 << infos.len()) - 1;
    for OfThread { payload, .. } in ends {
        let own = || {
            let places = infos.iter().enumerate();
            places.filter(|(_, info)| info.is_result == payload.is_result())
        };
        let mut read = payload.values(own().map(|(_, info)| info.kind));
        for (place, info) in own() {
            values[place] = value_of(info, payload, read.next().flatten());
            absent &= !(1 << place);
        }
    }
    let missing = (0..values.len()).filter(|&place| values[place].is_none());
    put(out, missing.fold(absent << ABSENT, |bits, place| bits | 1 << place));
    for (info, value) in infos.iter().zip(&values) {
        value.iter().for_each(|value| pack(out, info.kind, value));
    }
}

/// Writes a value. An integer is short if it is close to 0.
fn pack(out: &mut Vec<u8>, kind: ValueKind, value: &Value) {
    match value {
        Value::Signed(number) => put(out, (number << 1 ^ number >> 63) as u64),
        // It gets its name back when it is taken.
        Value::Enumerator(one) => {
            let number = Value::from_word(kind, one.number as u64);
            number.iter().for_each(|number| pack(out, kind, number));
        }
        Value::Unsigned(number) | Value::Pointer(number) => put(out, *number),
        Value::Bool(is_true) => put(out, (*is_true).into()),
        Value::Char(byte) => put(out, (*byte).into()),
        Value::Float(number) => out.extend(number.to_bits().to_le_bytes()),
        Value::Text(text) => {
            put(out, text.bytes().len() as u64);
            out.extend(text.bytes());
        }
    }
}

/// Takes a value. The cost of a text is taken from `room`.
fn unpack(bytes: &mut &[u8], kind: ValueKind, room: &mut usize) -> Result<Value, RecordError> {
    Ok(match kind {
        ValueKind::Signed => {
            let number = take(bytes)?;
            Value::Signed((number >> 1) as i64 ^ -((number & 1) as i64))
        }
        ValueKind::Unsigned | ValueKind::Pointer | ValueKind::Bool | ValueKind::Char => {
            let number = take(bytes)?;
            Value::from_word(kind, number).unwrap_or(Value::Unsigned(number))
        }
        ValueKind::Float => {
            let is_short = RecordError::Malformed("there is less than it says");
            let (number, rest) = bytes.split_first_chunk().ok_or(is_short)?;
            *bytes = rest;
            Value::Float(Float::from_bits(u64::from_le_bytes(*number)))
        }
        ValueKind::Text | ValueKind::LongText => {
            let length = take_count(bytes, 1)?;
            let (text, rest) = bytes.split_at(length);
            *bytes = rest;
            let left = room.checked_sub(texts_cost(1, text.len()));
            *room = left.ok_or(RecordError::Malformed("a chunk has more text than any should"))?;
            let is_long = RecordError::Malformed("a text is longer than any should be");
            let is_short = kind == ValueKind::Text;
            let text = if is_short { Text::new(text) } else { Text::long(text) };
            Value::Text(text.ok_or(is_long)?)
        }
    })
}

impl Payloads {
    /// Returns the number of lost payloads, without decoding the others.
    pub(crate) fn decode_lost(mut bytes: &[u8]) -> Result<u64, RecordError> {
        take(&mut bytes)?;
        take(&mut bytes)
    }

    /// Decodes the block, which has `stored` bytes in the file.
    pub(crate) fn decode(
        mut bytes: &[u8],
        stored: u32,
        functions: &[FunctionInfo],
    ) -> Result<Self, RecordError> {
        let bytes = &mut bytes;
        let most = FREE.saturating_add(stored as usize * IN_A_BYTE).min(MOST_PAYLOADS);
        let mut room = MOST_TEXTS;
        let (to, lost) = (take(bytes)?, take(bytes)?);
        let mut each = Vec::new();
        for _ in 0..take_count(bytes, 2)? {
            let thread = ThreadId(take_u32(bytes)?);
            let mut time = to;
            for _ in 0..take_count(bytes, 3)? {
                if each.len() == most {
                    return Err(RecordError::Malformed("a chunk has more values than any should"));
                }
                time = time.wrapping_sub(take(bytes)?);
                let function = FuncId(take_u32(bytes)?);
                let info = functions.get(function.index());
                let info = info.ok_or(RecordError::Malformed("there is no such function"))?;
                let missing = take(bytes)?;
                let values = info.values.iter().take(MAX_VALUES).enumerate().map(|(at, info)| {
                    let is_there = missing >> at & 1 == 0;
                    let value = is_there.then(|| unpack(bytes, info.kind, &mut room));
                    value.transpose().map(|value| value.map(|value| info.named(value)))
                });
                let values = values.collect::<Result<Vec<_>, RecordError>>()?;
                let of_values = (1_u64 << values.len()) - 1;
                let absent = (missing & missing >> ABSENT & of_values) as u16;
                each.push(Payload { thread, time: Nanos(time), function, values, absent });
            }
        }
        match bytes.is_empty() {
            true => Ok(Self { each, lost }),
            false => Err(RecordError::Malformed("there are more values than it says")),
        }
    }
}
