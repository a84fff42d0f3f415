//! Values of the map `TRACED`: what happens to a traced process when it executes a new program.

/// It goes on at once.
pub const TRACED: u8 = 1;
/// It is about to become the command of `ctrace run`, whose probes are in place: it goes on, and
/// its later programs are held.
pub const TRACED_LAUNCHED: u8 = 2;
/// It stops before the first instruction of the new program, until user space has put its probes
/// in place and continues it. While nobody does that, it goes on at once, see [`HEARTBEAT_NANOS`].
/// `held` of the Exec record is set then.
pub const TRACED_HELD: u8 = 3;

/// User space writes the time into the map `HEARTBEAT`, several times in this many nanoseconds. When
/// the last time is longer ago, nobody is there who would continue a process.
pub const HEARTBEAT_NANOS: u64 = 2_000_000_000;
