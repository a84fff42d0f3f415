//! Payloads: values that a program reads where its probe is hit, beside the event of that hit.
//!
//! A payload is a record of its own, of [`Kind::Payload`](crate::Kind::Payload), so events without
//! values pay nothing. It has the time, the thread and the probe of its event, and is written behind
//! it. Its `sp` has a bit for each value that could not be read, the first value's lowest. Its
//! `lost_before` says how many slots it fills, itself included; values lie in the slots behind it.

use crate::operand::Operand;
use crate::ring::SLOT_LEN;

/// Values of one payload, at most: as many as a USDT note has arguments.
pub const MAX_VALUES: usize = 12;
/// Values in a slot.
pub const SLOT_VALUES: usize = SLOT_LEN / 8;
/// Slots of the largest payload.
pub const PAYLOAD_SLOTS: usize = payload_slots(MAX_VALUES);

/// Slots of a payload with so many values.
pub const fn payload_slots(values: usize) -> usize {
    1 + values.div_ceil(SLOT_VALUES)
}

/// What the program at one site reads: an element of the map `VALUES`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueSources {
    /// How many of `sources` count.
    pub count: u32,
    /// Always 0; keeps the layout free of implicit padding.
    pub reserved: u32,
    pub sources: [Operand; MAX_VALUES],
}

const _: () = assert!(size_of::<ValueSources>() == 8 + MAX_VALUES * size_of::<Operand>());
