//! Changes in a process: the second slot of a control record, by kind.
//!
//! The programs make a [`Change`] and user space gets one. Nothing else knows the layout of the
//! words.

use crate::{Kind, RECORD_LEN, Slot, WokenFrom, words::u64_at};

/// The name of a thread as the kernel keeps it: padded with zeros, in an unknown encoding.
pub type Comm = [u8; 16];

/// A change. The record before it tells the time, the process and the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The thread has created another one in the process `child`: a further thread of its own
    /// process, or a new process. `comm` is the name of both.
    Fork { comm: Comm, child: u32, child_tid: u32 },
    /// The process runs a new program, after which `comm` is named. `by`: the former id of the
    /// calling thread. `held`: it is stopped before its first instruction.
    Exec { comm: Comm, by: u32, held: bool },
    /// The thread is gone. `work`: for how long it had a processor or waited for one, in nanoseconds, but for
    /// what the kernel had not counted yet. 0 if that is not known, or if it never gave up a processor
    /// by itself.
    ThreadExit { comm: Comm, work: u64 },
    /// The process's last thread is gone; `status` is the wait status.
    ProcessExit { comm: Comm, status: u32 },
    /// The thread has a new name.
    Rename { comm: Comm },
    /// The thread has a new marker buffer at `address`. `runtime`: the number from the cookie of
    /// the register site; `site`: the address of that site; `inside`: the thread's id in its own
    /// pid namespace.
    Buffer { runtime: u32, inside: u32, address: u64, site: u64 },
    /// The return addresses of the thread's open calls are put back: return probes do not see them
    /// end. Or it throws, and calls may end unseen by any probe. `sp`: its stack pointer, or 0 if it
    /// is not known.
    Restored { sp: u64 },
    /// The thread, whose name is `comm`, wakes the thread `woken_tid` of the process `woken`. It need not be
    /// of a traced process. Unless it is `from` this thread, that is the one that happened to run.
    Wake { comm: Comm, woken: u32, woken_tid: u32, from: WokenFrom },
}

impl Change {
    #[inline(always)]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Fork { .. } => Kind::Fork,
            Self::Exec { .. } => Kind::Exec,
            Self::ThreadExit { .. } => Kind::ThreadExit,
            Self::ProcessExit { .. } => Kind::ProcessExit,
            Self::Rename { .. } => Kind::Rename,
            Self::Buffer { .. } => Kind::Buffer,
            Self::Restored { .. } => Kind::Restored,
            Self::Wake { .. } => Kind::Wake,
        }
    }

    /// Returns the second slot of its record.
    #[inline(always)]
    pub const fn to_slot(self) -> Slot {
        let (comm, third, fourth) = match self {
            Self::Fork { comm, child, child_tid } => (comm, child as u64, child_tid as u64),
            Self::Exec { comm, by, held } => (comm, by as u64, held as u64),
            Self::ThreadExit { comm, work } => (comm, work, 0),
            Self::Rename { comm } => (comm, 0, 0),
            Self::ProcessExit { comm, status } => (comm, status as u64, 0),
            Self::Buffer { runtime, inside, address, site } => {
                return [runtime as u64 | (inside as u64) << 32, 0, address, site];
            }
            Self::Restored { sp } => return [sp, 0, 0, 0],
            Self::Wake { comm, woken, woken_tid, from } => {
                (comm, woken as u64 | (woken_tid as u64) << 32, from as u64)
            }
        };
        let comm = u128::from_le_bytes(comm);
        [comm as u64, (comm >> 64) as u64, third, fourth]
    }

    /// Reads the change of this kind. Returns `None` if the kind is not a change, or if reserved
    /// bits are set.
    pub fn from_bytes(kind: Kind, bytes: &[u8; RECORD_LEN]) -> Option<Self> {
        let [first, second, third, fourth] = [0, 8, 16, 24].map(|at| u64_at(bytes, at));
        let comm = (u128::from(first) | u128::from(second) << 64).to_le_bytes();
        let change = match kind {
            Kind::Fork => Self::Fork { comm, child: third as u32, child_tid: fourth as u32 },
            Kind::Exec => Self::Exec { comm, by: third as u32, held: fourth == 1 },
            Kind::ThreadExit => Self::ThreadExit { comm, work: third },
            Kind::ProcessExit => Self::ProcessExit { comm, status: third as u32 },
            Kind::Rename => Self::Rename { comm },
            Kind::Buffer => Self::Buffer {
                runtime: first as u32,
                inside: (first >> 32) as u32,
                address: third,
                site: fourth,
            },
            Kind::Restored => Self::Restored { sp: first },
            Kind::Wake => Self::Wake {
                comm,
                woken: third as u32,
                woken_tid: (third >> 32) as u32,
                from: WokenFrom::from_wire(fourth)?,
            },
            _ => return None,
        };
        // All bits that are not part of the change must be 0.
        (change.to_slot() == [first, second, third, fourth]).then_some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMM: Comm = *b"a thread's name\0";

    fn bytes(slot: Slot) -> [u8; RECORD_LEN] {
        let mut bytes = [0; RECORD_LEN];
        for (piece, word) in bytes.chunks_exact_mut(8).zip(slot) {
            piece.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Checks a change, and the number of reserved bits of its slot.
    fn check(change: Change, reserved: u32) {
        let slot = change.to_slot();
        let read = |slot| Change::from_bytes(change.kind(), &bytes(slot));
        assert_eq!(read(slot), Some(change));
        let mut refused = 0;
        for bit in 0..256 {
            let mut other = slot;
            other[bit / 64] ^= 1 << (bit % 64);
            assert_ne!(read(other), Some(change), "bit {bit} is part of it");
            refused += u32::from(read(other).is_none());
        }
        assert_eq!(refused, reserved, "{change:?}");
    }

    #[test]
    fn every_bit_is_part_of_the_change_or_refused() {
        check(Change::Fork { comm: COMM, child: 7, child_tid: 9 }, 64);
        check(Change::Exec { comm: COMM, by: 8, held: true }, 32 + 63);
        check(Change::ThreadExit { comm: COMM, work: 5 << 40 }, 64);
        check(Change::ProcessExit { comm: COMM, status: 3 << 8 }, 96);
        check(Change::Rename { comm: COMM }, 128);
        check(Change::Buffer { runtime: 1, inside: 2, address: 3 << 12, site: 4 }, 64);
        check(Change::Restored { sp: 0x7ffc_1234_5678 }, 192);
        let wake = |from| Change::Wake { comm: COMM, woken: 5, woken_tid: 6, from };
        check(wake(WokenFrom::Thread), 62);
        check(wake(WokenFrom::Interrupt), 63);
        check(wake(WokenFrom::Unknown), 63);
    }

    #[test]
    fn calls_are_no_changes() {
        assert_eq!(Change::from_bytes(Kind::Enter, &[0; RECORD_LEN]), None);
        assert_eq!(Change::from_bytes(Kind::Batch, &[0; RECORD_LEN]), None);
    }
}
