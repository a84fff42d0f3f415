//! What the per-CPU map of losses counts, by index.

/// Events that found no room in a ring, or could not be read.
pub const LOST_EVENTS: u32 = 0;
/// Those of them that no record's `lost_before` will ever tell: too many threads had losses at
/// once, the thread ended without another record, or its losses were more than the field holds.
pub const LOST_UNATTRIBUTED: u32 = 1;
/// Events of markers whose batch found no room, and no entry in `CUT_OFF` either. They are in none
/// of the others.
pub const LOST_MARKS: u32 = 2;
/// Payloads that found no room in a ring. Their events are there.
pub const LOST_PAYLOADS: u32 = 3;
/// How many counters there are.
pub const LOSS_COUNTERS: u32 = 4;
