//! From the bytes of a ring to events in order of time.
//!
//! [`decode`] turns the bytes of a record into a type, [`event`] is a call's record as it is held,
//! and `order` merges the rings of all CPUs.

pub mod decode;
pub mod event;
pub(crate) mod order;
