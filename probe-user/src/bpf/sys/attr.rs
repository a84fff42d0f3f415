//! The argument block of bpf(2) and perf_event_open(2): fields at byte offsets.
//!
//! The kernel accepts a longer block than it knows if the rest is zero. So one length fits every
//! kernel and every command.

const WORDS: usize = 18;

#[derive(Clone)]
pub(crate) struct Attr([u64; WORDS]);

impl Attr {
    pub(crate) const LEN: usize = WORDS * 8;

    pub(crate) fn new() -> Self {
        Self([0; WORDS])
    }

    pub(crate) fn u32(mut self, offset: usize, value: u32) -> Self {
        let shift = offset % 8 * 8;
        let word = &mut self.0[offset / 8];
        *word = *word & !(0xffff_ffff << shift) | u64::from(value) << shift;
        self
    }

    pub(crate) fn u64(mut self, offset: usize, value: u64) -> Self {
        self.0[offset / 8] = value;
        self
    }

    /// Sets a pointer. Its target must live until the call is over.
    pub(crate) fn pointer<T>(self, offset: usize, value: *const T) -> Self {
        self.u64(offset, value as u64)
    }

    /// Sets a name of at most 15 bytes and a zero.
    pub(crate) fn name(mut self, offset: usize, name: &str) -> Self {
        for (index, byte) in name.bytes().take(15).enumerate() {
            let at = offset + index;
            self.0[at / 8] |= u64::from(byte) << (at % 8 * 8);
        }
        self
    }

    pub(super) fn as_ptr(&self) -> *const u64 {
        self.0.as_ptr()
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u64 {
        self.0.as_mut_ptr()
    }

    pub(crate) fn get_u32(&self, offset: usize) -> u32 {
        (self.0[offset / 8] >> (offset % 8 * 8)) as u32
    }

    pub(crate) fn get_u64(&self, offset: usize) -> u64 {
        self.0[offset / 8]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_at_their_offsets() {
        let attr = Attr::new().u32(0, 1).u32(4, 2).u64(8, 3).u32(68, 57).name(20, "ring");
        assert_eq!([attr.get_u32(0), attr.get_u32(4), attr.get_u32(68)], [1, 2, 57]);
        assert_eq!(attr.get_u64(8), 3);
        assert_eq!(attr.get_u32(20).to_le_bytes(), *b"ring");
        assert_eq!(attr.get_u32(24), 0);
    }

    #[test]
    fn long_names_are_cut() {
        let attr = Attr::new().name(0, "abcdefghijklmnopqrstuvwxyz");
        assert_eq!(attr.get_u64(8).to_le_bytes(), *b"ijklmno\0");
    }
}
