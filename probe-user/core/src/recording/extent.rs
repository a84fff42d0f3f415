//! How much memory a chunk takes. It is known before the chunk is unpacked into calls, and a small
//! file must not become large there.

use super::chunk::{Call, OpenCall};
use super::varint::{take, take_count};
use super::{CHUNK_CALLS, RecordError};

/// Many times what chunks take that ctrace writes, of which only those are large in which very deep
/// stacks end at once.
const MOST: u64 = 64 << 20;
/// A chunk has this many calls for a few bytes, if they are all alike. Only where deep stacks end at once
/// it has more, and those differ.
const CALLS: u64 = 2 * CHUNK_CALLS as u64;
/// Calls that one byte of a file stands for, beyond that: loops around one empty scope have 3.
pub(super) const CALLS_IN_A_BYTE: u64 = 16;
/// The same of threads, open calls and functions with exits alone: each has a number that no other has.
const OTHERS: u64 = 1 << 17;
const OTHERS_IN_A_BYTE: u64 = 8;
/// A thread, and its list of open calls.
const THREAD: u64 = 128;
const HEADLESS: u64 = 16;

/// Refuses a chunk that would take too much; it has so many bytes in the file.
pub(super) fn check(mut contents: &[u8], stored: u32) -> Result<(), RecordError> {
    let bytes = &mut contents;
    (0..6).try_for_each(|_| take(bytes).map(drop))?;
    let headless = take_pairs(bytes)?;
    let threads = take_count(bytes, 3)? as u64;
    let (mut calls, mut open) = (0_u64, 0_u64);
    for _ in 0..threads {
        take(bytes)?;
        calls = calls.saturating_add(take(bytes)?);
        open += take_pairs(bytes)?;
    }
    if calls > CALLS + CALLS_IN_A_BYTE * u64::from(stored) {
        return Err(RecordError::Malformed("a chunk has more calls than its bytes can tell of"));
    }
    if headless + threads + open > OTHERS + OTHERS_IN_A_BYTE * u64::from(stored) {
        return Err(RecordError::Malformed("a chunk has more threads than its bytes can tell of"));
    }
    let calls = calls.saturating_mul(size_of::<Call>() as u64);
    let others = headless * HEADLESS + threads * THREAD + open * size_of::<OpenCall>() as u64;
    match calls.saturating_add(others) <= MOST {
        true => Ok(()),
        false => Err(RecordError::Malformed("a chunk has more calls than any should")),
    }
}

/// Passes over pairs of numbers, and tells how many there are.
fn take_pairs(bytes: &mut &[u8]) -> Result<u64, RecordError> {
    let pairs = take_count(bytes, 2)? as u64;
    (0..2 * pairs).try_for_each(|_| take(bytes).map(drop))?;
    Ok(pairs)
}
