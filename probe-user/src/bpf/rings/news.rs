//! The messages by which the programs wake user space.

use crate::bpf::BpfError;
use aya::maps::{MapData, RingBuf};
use std::os::fd::{AsFd, BorrowedFd};

/// The messages. Its descriptor becomes readable when there are some.
pub(crate) struct News(RingBuf<MapData>);

impl News {
    pub(crate) fn take(ebpf: &mut aya::Ebpf) -> Result<Self, BpfError> {
        let missing = || BpfError::Object { reason: "it has no map `NEWS`".into() };
        let ring = RingBuf::try_from(ebpf.take_map("NEWS").ok_or_else(missing)?);
        ring.map(Self).map_err(|error| BpfError::Object { reason: error.to_string() })
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
