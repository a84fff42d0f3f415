//! The cause of a wait: what a record of a wait has in the place of a probe id.

/// The number of the system call of a thread that is in none, such as in a page fault.
pub const NO_SYSCALL: u16 = 0xffff;

/// The high byte of all causes. No probe id is as large.
const TAG: u32 = 0xff00_0000;
const STATE_SHIFT: u32 = 16;

/// The state of a thread that has no processor.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitState {
    /// It lost its processor, or gave it up, and could go on at once.
    Preempted = 0,
    /// It was blocked, and can go on as soon as it gets a processor.
    Woken = 1,
    /// It is blocked, and a signal wakes it.
    Interruptible = 2,
    /// It is blocked, and no usual signal wakes it.
    Uninterruptible = 3,
    /// Its process is stopped, by a signal or a debugger.
    Stopped = 4,
}

/// The place from which a thread is woken.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WokenFrom {
    /// A thread did it: by a system call, or in a page fault.
    Thread = 0,
    /// A timer or a device did, in an interrupt on top of any thread.
    Interrupt = 1,
    /// The program could not tell.
    Unknown = 2,
}

impl WokenFrom {
    /// Returns the place for a word from the wire, if it is one.
    pub const fn from_wire(word: u64) -> Option<Self> {
        Some(match word {
            0 => Self::Thread,
            1 => Self::Interrupt,
            2 => Self::Unknown,
            _ => return None,
        })
    }
}

/// The 32 bits of a cause: bits 0–15 the number of the system call or [`NO_SYSCALL`], 16–23 a
/// [`WaitState`], 24–31 ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause(pub u32);

impl Cause {
    #[inline(always)]
    pub const fn new(state: WaitState, syscall: u16) -> Self {
        Self(TAG | (state as u32) << STATE_SHIFT | syscall as u32)
    }

    pub const fn syscall(self) -> u16 {
        self.0 as u16
    }

    /// Returns the state, if it is a cause with one that is known.
    pub const fn state(self) -> Option<WaitState> {
        if self.0 & TAG != TAG {
            return None;
        }
        Some(match (self.0 >> STATE_SHIFT) as u8 {
            0 => WaitState::Preempted,
            1 => WaitState::Woken,
            2 => WaitState::Interruptible,
            3 => WaitState::Uninterruptible,
            4 => WaitState::Stopped,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_its_parts_and_is_no_probe() {
        let cause = Cause::new(WaitState::Uninterruptible, 202);
        assert_eq!((cause.state(), cause.syscall()), (Some(WaitState::Uninterruptible), 202));
        assert_eq!(Cause(cause.0 + (2 << STATE_SHIFT)).state(), None);
        assert_eq!(Cause(cause.0 & !(1 << 31)).state(), None);
    }
}
