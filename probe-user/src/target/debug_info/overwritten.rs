//! Memory behind the addresses that a function gets: whether it writes there before it reads.
//!
//! Rust passes large structures by their address. One that its function overwrites first need not be filled
//! in by the caller, so what is there at the entry may be anything.

use iced_x86::OpAccess;
use std::ops::Range;

/// The accesses of a function's first instructions, by the register in which the address came.
#[derive(Debug, Default)]
pub(super) struct Overwritten {
    read: Vec<(u8, Range<i64>)>,
    written_first: Vec<u8>,
}

impl Overwritten {
    /// Notes an access to these bytes behind the address.
    pub(super) fn note(&mut self, register: u8, bytes: Range<i64>, access: OpAccess) {
        match access {
            OpAccess::None | OpAccess::NoMemAccess => {}
            OpAccess::Write | OpAccess::CondWrite => {
                let mut unread = bytes.start;
                let mut read: Vec<_> = self.read.iter().filter(|(of, _)| *of == register).collect();
                read.sort_unstable_by_key(|(_, read)| read.start);
                for (_, read) in read {
                    if read.start <= unread {
                        unread = unread.max(read.end);
                    }
                }
                if unread < bytes.end {
                    self.written_first.push(register);
                }
            }
            _ => self.read.push((register, bytes)),
        }
    }

    /// Returns whether something behind the address in this register is written before it is read.
    pub(super) fn is(&self, register: u8) -> bool {
        self.written_first.contains(&register)
    }
}
