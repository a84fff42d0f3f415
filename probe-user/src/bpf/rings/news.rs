//! The messages by which the programs wake user space.

use crate::bpf::{BpfError, load::maps::Maps};
use aya::maps::{MapData, RingBuf};
use std::os::fd::{AsFd, BorrowedFd};

/// The messages. Its descriptor becomes readable when there are some.
pub(crate) struct News(RingBuf<MapData>);

impl News {
    pub(crate) fn take(maps: &mut Maps) -> Result<Self, BpfError> {
        maps.take_ring("NEWS").map(Self)
    }

    /// Takes all new messages.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(u32)) {
        while let Some(item) = self.0.next() {
            if let Some(bytes) = item.first_chunk() {
                each(u32::from_le_bytes(*bytes));
            }
        }
    }
}

impl AsFd for News {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
