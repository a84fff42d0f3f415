//! The indices of the counters in the per-CPU map of losses.

/// Events that found no room in a ring, or could not be read.
pub const LOST_EVENTS: u32 = 0;
/// Those of them that no record's `lost_before` reports: too many threads had losses at once, the
/// thread ended without another record, or its losses exceeded the field.
pub const LOST_UNATTRIBUTED: u32 = 1;
/// Events of markers whose batch found no room, and no entry in `CUT_OFF` either. No other counter
/// includes them.
pub const LOST_MARKS: u32 = 2;
/// Payloads that found no room in a ring. Their events are there.
pub const LOST_PAYLOADS: u32 = 3;
/// Nanoseconds for which threads waited until their ring was read. Nothing is lost by that.
pub const WAITED_NANOS: u32 = 4;
/// The number of counters.
pub const LOSS_COUNTERS: u32 = 5;
