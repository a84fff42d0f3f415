//! Payloads in a recording: a separate block behind the chunk of their calls.
//!
//! The index does not list the block, and readers without payload support skip it. The names and
//! types of a function's values are in the function's definition.

use super::RecordError;
use super::varint::{put, take, take_count, take_u32};
use crate::function::{FunctionInfo, ValueKind};
use crate::units::{FuncId, Nanos, ThreadId};
use crate::values::{RingPayload, Value};
use ctrace_common::MAX_VALUES;
use std::cmp::Reverse;

/// Payloads of a chunk, at most: ctrace keeps no more, and a file with more is refused.
pub(crate) const MOST_PAYLOADS: usize = 1 << 17;

/// Payloads that a block may have however few its bytes are: a small file must not take long to
/// read.
const FREE: usize = 1 << 10;
const IN_A_BYTE: usize = 16;

/// A payload from a ring and its thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfThread {
    pub(crate) thread: ThreadId,
    pub(crate) payload: RingPayload,
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
    /// The values; `None` for those that could not be read.
    pub values: Vec<Option<Value>>,
}

/// The payloads of a chunk's calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payloads {
    /// Payloads by thread, latest first within a thread.
    pub each: Vec<Payload>,
    /// The number of payloads that were lost.
    pub lost: u64,
}

/// Returns the contents of the block, or `None` if there are no payloads and none were lost.
pub(crate) fn encode(
    mut payloads: Vec<OfThread>,
    lost: u64,
    to: u64,
    functions: &[FunctionInfo],
) -> Option<Vec<u8>> {
    if payloads.is_empty() && lost == 0 {
        return None;
    }
    payloads.sort_by_key(|of| (of.thread, Reverse(of.payload.time)));
    let mut out = Vec::new();
    put(&mut out, to);
    put(&mut out, lost);
    let threads: Vec<_> = payloads.chunk_by(|a, b| a.thread == b.thread).collect();
    put(&mut out, threads.len() as u64);
    for of_thread in threads {
        put(&mut out, of_thread[0].thread.0.into());
        put(&mut out, of_thread.len() as u64);
        let mut after = to;
        for OfThread { payload, .. } in of_thread {
            put(&mut out, after.wrapping_sub(payload.time.0));
            after = payload.time.0;
            put(&mut out, payload.function.0.into());
            let kinds = functions.get(payload.function.index()).map_or(&[][..], |f| &f.values);
            let kinds = &kinds[..kinds.len().min(MAX_VALUES)];
            let values: Vec<_> = payload.values(kinds.len()).collect();
            let missing = (0..kinds.len()).filter(|&at| values.get(at).is_none_or(Option::is_none));
            put(&mut out, missing.fold(0, |bits, at| bits | 1 << at));
            for (info, word) in kinds.iter().zip(values) {
                word.into_iter().for_each(|word| put(&mut out, packed(info.kind, word)));
            }
        }
    }
    Some(out)
}

/// Encodes a value as a number that is small if the value is close to 0.
fn packed(kind: ValueKind, word: u64) -> u64 {
    match kind {
        ValueKind::Signed => word << 1 ^ (word as i64 >> 63) as u64,
        ValueKind::Unsigned => word,
    }
}

fn unpacked(kind: ValueKind, number: u64) -> Value {
    match kind {
        ValueKind::Signed => Value::Signed((number >> 1) as i64 ^ -((number & 1) as i64)),
        ValueKind::Unsigned => Value::Unsigned(number),
    }
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
                    is_there.then(|| Ok(unpacked(info.kind, take(bytes)?))).transpose()
                });
                let values = values.collect::<Result<_, RecordError>>()?;
                each.push(Payload { thread, time: Nanos(time), function, values });
            }
        }
        match bytes.is_empty() {
            true => Ok(Self { each, lost }),
            false => Err(RecordError::Malformed("there are more values than it says")),
        }
    }
}
