//! Integers of variable length (LEB128): seven bits a byte, lowest first.

use super::RecordError;

pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Removes a number from the front of `bytes`. A call of it would take longer than most numbers.
#[inline(always)]
pub(crate) fn take(bytes: &mut &[u8]) -> Result<u64, RecordError> {
    match **bytes {
        [low, ref rest @ ..] if low < 0x80 => {
            *bytes = rest;
            Ok(low.into())
        }
        [low, high, ref rest @ ..] if high < 0x80 => {
            *bytes = rest;
            Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
        }
        _ => match bytes.first_chunk() {
            Some(word) => take_within(bytes, u64::from_le_bytes(*word)),
            None => take_long(bytes),
        },
    }
}

/// Removes a number of which `word` has the first eight bytes.
fn take_within(bytes: &mut &[u8], word: u64) -> Result<u64, RecordError> {
    // The place of the first byte after which no other follows.
    let ends = !word & 0x8080_8080_8080_8080;
    let length = (ends.trailing_zeros() / 8 + 1) as usize;
    if length > 8 {
        return take_long(bytes);
    }
    *bytes = &bytes[length..];
    let kept = word & u64::MAX >> (64 - 8 * length);
    // Seven bits of each byte, then those of two bytes and of four side by side.
    let pairs = kept & 0x007f_007f_007f_007f | (kept & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    Ok(fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4)
}

fn take_long(bytes: &mut &[u8]) -> Result<u64, RecordError> {
    let mut value = 0;
    for (place, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * place);
        // The tenth byte has room for one bit.
        if byte < 0x80 && (place < 9 || byte <= 1) {
            *bytes = &bytes[place + 1..];
            return Ok(value);
        }
    }
    Err(RecordError::Malformed("a number does not end"))
}

/// Takes a count. It is refused unless `bytes` has room for so many things of `least` bytes each.
pub(crate) fn take_count(bytes: &mut &[u8], least: usize) -> Result<usize, RecordError> {
    let count = take(bytes)?;
    match usize::try_from(count) {
        Ok(count) if count.checked_mul(least).is_some_and(|need| need <= bytes.len()) => Ok(count),
        _ => Err(RecordError::Malformed("there is less than it says")),
    }
}

/// Takes a number that must fit 32 bits.
pub(crate) fn take_u32(bytes: &mut &[u8]) -> Result<u32, RecordError> {
    u32::try_from(take(bytes)?).map_err(|_| RecordError::Malformed("a number is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn numbers_come_back(numbers in prop::collection::vec(
            (any::<u64>(), 0u32..64).prop_map(|(n, shift)| n >> shift), 0..50,
        )) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|&number| put(&mut bytes, number));
            let mut rest = bytes.as_slice();
            for &number in &numbers {
                prop_assert_eq!(take(&mut rest).ok(), Some(number));
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_give_a_number_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut rest = bytes.as_slice();
            while !rest.is_empty() && take(&mut rest).is_ok() {}
        }
    }
}
