//! Bounds on the memory of a chunk. They are checked before the chunk is decoded, so that a small
//! hostile file cannot fill memory.

use super::chunk::{Call, OpenCall};
use super::varint::{take, take_count};
use super::{CHUNK_CALLS, RecordError};

/// Bytes of a decoded chunk, at most. ctrace's own chunks take far less; only very deep stacks that
/// end at once make large ones.
const MOST: u64 = 64 << 20;
/// Calls that a chunk may have however few its bytes are: equal calls compress to almost nothing.
/// Chunks with more come from deep stacks that end at once, and those calls differ.
const CALLS: u64 = 2 * CHUNK_CALLS as u64;
/// Further calls allowed for each byte in the file. Loops around one empty scope reach 3.
pub(super) const CALLS_IN_A_BYTE: u64 = 16;
/// The same two bounds for threads, open calls and functions with exits alone, together. They
/// compress less: each has a number of its own.
const OTHERS: u64 = 1 << 17;
const OTHERS_IN_A_BYTE: u64 = 8;
/// Bytes of a thread with its list of open calls.
const THREAD: u64 = 128;
const HEADLESS: u64 = 16;

/// Refuses a chunk that would take too much memory. It has `stored` bytes in the file.
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

/// Skips pairs of numbers and returns how many there are.
fn take_pairs(bytes: &mut &[u8]) -> Result<u64, RecordError> {
    let pairs = take_count(bytes, 2)? as u64;
    (0..2 * pairs).try_for_each(|_| take(bytes).map(drop))?;
    Ok(pairs)
}
