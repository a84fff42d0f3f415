//! The levels of messages.

/// How important a [`message!`](crate::message) is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    Trace = 1,
    Debug,
    Info,
    Warn,
    Error,
}
