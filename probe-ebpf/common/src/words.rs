//! Numbers at an offset of an array of bytes, little endian.

#[inline]
pub(crate) fn bytes_at<const N: usize, const M: usize>(bytes: &[u8; N], at: usize) -> [u8; M] {
    let mut piece = [0; M];
    piece.copy_from_slice(&bytes[at..at + M]);
    piece
}

#[inline]
pub(crate) fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_le_bytes(bytes_at(bytes, at))
}

#[inline]
pub(crate) fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes(bytes_at(bytes, at))
}

#[inline]
pub(crate) fn u64_at<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    u64::from_le_bytes(bytes_at(bytes, at))
}
