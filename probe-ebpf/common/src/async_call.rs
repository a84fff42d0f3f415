//! The value that comes with each poll of an async function: which call it belongs to, and what it does to it.

/// A call of an async function, and a step of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncCall(pub u64);

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncStep {
    /// It goes on with a poll.
    Resumed = 0,
    /// It begins with a poll.
    Begun = 1,
    /// It has completed, in the last poll.
    Completed = 2,
    /// It was dropped, or has panicked.
    Dropped = 3,
}

impl AsyncCall {
    const STEP_BITS: u32 = 2;

    pub const fn new(id: u64, step: AsyncStep) -> Self {
        Self(id << Self::STEP_BITS | step as u64)
    }

    /// Returns its number in its process. `None` if it began while nobody traced it.
    pub const fn id(self) -> Option<u64> {
        match self.0 >> Self::STEP_BITS {
            0 => None,
            id => Some(id),
        }
    }

    pub const fn step(self) -> AsyncStep {
        match self.0 & 3 {
            0 => AsyncStep::Resumed,
            1 => AsyncStep::Begun,
            2 => AsyncStep::Completed,
            _ => AsyncStep::Dropped,
        }
    }

    /// Returns true if the entry with this value is no poll, but the end of the call.
    pub const fn is_end(self) -> bool {
        self.0 & 2 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_call_and_a_step() {
        use AsyncStep::{Begun, Completed, Dropped, Resumed};
        for step in [Resumed, Begun, Completed, Dropped] {
            let value = AsyncCall::new(7, step);
            assert_eq!((value.id(), value.step()), (Some(7), step));
            assert_eq!(value.is_end(), matches!(step, Completed | Dropped));
        }
        assert_eq!(AsyncCall(0).id(), None, "a poll of a call that began unseen");
        assert_eq!(AsyncCall(u64::MAX).id(), Some((1 << 62) - 1));
    }
}
