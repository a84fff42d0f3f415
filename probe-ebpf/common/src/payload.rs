//! Payloads: values that a program reads when its probe is hit, in addition to the event of that
//! hit.
//!
//! A payload is a separate record of [`Kind::Payload`](crate::Kind::Payload), so events without
//! values cost nothing more. It has the time, the thread and the probe of its event, and follows
//! it. Its `sp` has a bit for each value that could not be read; the first value has the lowest
//! bit. Its `lost_before` is the number of slots that it fills, including the first. Values lie in
//! the slots after that one.

use crate::operand::Operand;
use crate::ring::SLOT_LEN;

/// The largest number of values of a payload: a USDT note has no more arguments.
pub const MAX_VALUES: usize = 12;
/// Values in a slot.
pub const SLOT_VALUES: usize = SLOT_LEN / 8;
/// Slots of the largest payload.
pub const PAYLOAD_SLOTS: usize = payload_slots(MAX_VALUES);

/// Returns the number of slots of a payload with this many values.
pub const fn payload_slots(values: usize) -> usize {
    1 + values.div_ceil(SLOT_VALUES)
}

/// The sources of the values at one site: an element of the map `VALUES`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueSources {
    /// The number of used elements of `sources`.
    pub count: u32,
    /// Always 0; keeps the layout free of implicit padding.
    pub reserved: u32,
    pub sources: [Operand; MAX_VALUES],
}

const _: () = assert!(size_of::<ValueSources>() == 8 + MAX_VALUES * size_of::<Operand>());
