//! The bytes of a buffer, as they are read.

use super::layout::{BUFFER_LEN, is_whole, mark, take_passed_site};
use super::objects::Passed;
use crate::units::{Nanos, Pid, Tid};

/// A buffer, by its process and address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId {
    pub pid: Pid,
    pub address: u64,
}

/// The bytes of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub buffer: BufferId,
    pub tid: Tid,
    /// The time of the reading; if there are two, a time between them.
    pub time: Nanos,
    pub bytes: Box<[u8; BUFFER_LEN]>,
    /// The data of the flush, if it was one.
    pub passed: Option<Passed>,
    /// An earlier reading of a buffer that was in use.
    pub before: Option<Box<[u8; BUFFER_LEN]>>,
}

impl Reading {
    /// Returns whether it is complete: every slot that was taken by then is written in it.
    pub fn is_whole(&self) -> bool {
        is_whole(self.before.as_ref().unwrap_or(&self.bytes))
    }

    /// Makes a reading of shipped bytes, which lack the first 32 and empty slots at the end.
    pub(crate) fn shipped(
        buffer: BufferId,
        tid: Tid,
        time: Nanos,
        runtime: u32,
        shipped: &[u8],
    ) -> Self {
        let whole: Result<Box<[u8; BUFFER_LEN]>, _> = Box::<[u8]>::from(shipped).try_into();
        let mut bytes = whole.unwrap_or_else(|part: Box<[u8]>| padded(&part));
        mark(&mut bytes);
        let address = take_passed_site(&mut bytes);
        let passed = (address != 0).then_some(Passed { runtime, address });
        Self { buffer, tid, time, bytes, passed, before: None }
    }
}

fn padded(part: &[u8]) -> Box<[u8; BUFFER_LEN]> {
    let mut bytes = Box::new([0; BUFFER_LEN]);
    let length = part.len().min(BUFFER_LEN);
    bytes[..length].copy_from_slice(&part[..length]);
    bytes
}
