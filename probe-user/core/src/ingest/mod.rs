//! From the bytes of a ring to events in order of time.
//!
//! [`decode`] turns the bytes of a record into a type or an [`error`], [`event`] is a call's record
//! as it is held, [`change`] is one in a process, and `order` merges the rings of all CPUs.

pub mod change;
pub mod decode;
pub mod error;
pub mod event;
pub(crate) mod order;
