//! Reads calls and near jumps from bytes of code, wherever they begin.
//!
//! All bytes are taken for the first of an instruction. One that is none leads to a place by chance.

/// Bytes of the longest of them.
pub(crate) const LONGEST: usize = 6;

/// A way to a place that is given by its distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Near {
    Call,
    Jump,
    ConditionalJump,
}

/// Returns what the bytes at `from` are, and where it leads.
pub(crate) fn near(bytes: &[u8], from: u64) -> Option<(Near, u64)> {
    let (near, length) = match bytes {
        [0xe8, ..] => (Near::Call, 5),
        [0xe9, ..] => (Near::Jump, 5),
        [0x0f, 0x80..=0x8f, ..] => (Near::ConditionalJump, LONGEST),
        _ => return None,
    };
    let distance = i32::from_le_bytes(*bytes.get(length - 4..)?.first_chunk()?);
    Some((near, from.wrapping_add(length as u64).wrapping_add_signed(distance.into())))
}
