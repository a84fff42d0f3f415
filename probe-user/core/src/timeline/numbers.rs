//! A few numbers side by side, packed so that reading them takes no guess.
//!
//! A picture reads hundreds of thousands. Where each byte tells whether another follows, a processor guesses that, and
//! often wrong. Here two bytes tell the lengths of all numbers that come next, and each is cut out of eight bytes.

/// The bytes of a number, by what its head says.
const LENGTHS: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 8];
/// The bits of these.
const MASKS: [u64; 8] =
    [0, 0xff, 0xffff, 0xff_ffff, 0xffff_ffff, 0xff_ffff_ffff, 0xffff_ffff_ffff, u64::MAX];
/// Bytes that must follow the last numbers.
pub(super) const AFTER: usize = 8;

/// Returns how many bytes a number takes, if these are up to six.
pub(super) fn bytes_of(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(8) as usize
}

/// Puts numbers behind others.
pub(super) fn put<const N: usize>(out: &mut Vec<u8>, numbers: [u64; N]) {
    const { assert!(3 * N <= 16, "the head has three bits for each") };
    let first = out.len();
    out.extend([0; 2]);
    let mut head = 0_u16;
    for (place, number) in numbers.into_iter().enumerate() {
        let kind = bytes_of(number).min(LENGTHS.len() - 1);
        head |= (kind as u16) << (3 * place);
        out.extend_from_slice(&number.to_le_bytes()[..LENGTHS[kind]]);
    }
    out[first..first + 2].copy_from_slice(&head.to_le_bytes());
}

/// Takes numbers from the front. `None` if there are none.
#[inline]
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u64; N]> {
    let (head, mut rest) = bytes.split_first_chunk()?;
    let mut head = u16::from_le_bytes(*head);
    let mut numbers = [0; N];
    for number in &mut numbers {
        let kind = usize::from(head & 7);
        *number = u64::from_le_bytes(*rest.first_chunk()?) & MASKS[kind];
        rest = rest.get(LENGTHS[kind]..)?;
        head >>= 3;
    }
    *bytes = rest;
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn numbers_come_back(all in prop::collection::vec(
            prop::array::uniform5((any::<u64>(), 0_u32..65).prop_map(|(n, shift)| n.checked_shr(shift).unwrap_or(0))), 0..50,
        )) {
            let mut bytes = Vec::new();
            all.iter().for_each(|numbers| put(&mut bytes, *numbers));
            bytes.extend([0; AFTER]);
            let mut rest = bytes.as_slice();
            for numbers in &all {
                prop_assert_eq!(take(&mut rest), Some(*numbers));
            }
            prop_assert_eq!(rest.len(), AFTER);
        }

        #[test]
        fn any_bytes_give_numbers_or_none(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut rest = bytes.as_slice();
            while let Some([_, _, _]) = take(&mut rest) {}
        }
    }
}
