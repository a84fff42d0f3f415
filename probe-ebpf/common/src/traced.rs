//! Values of the map `TRACED`: the treatment of a traced process that executes a new program.

/// It continues at once.
pub const TRACED: u8 = 1;
/// It is about to become the command of `ctrace run`, whose probes are in place. It continues, and
/// its later programs are held.
pub const TRACED_LAUNCHED: u8 = 2;
/// It stops before the first instruction of the new program, until user space has placed its probes
/// and continues it. The Exec record has `held` set then. If user space does not run, see
/// [`HEARTBEAT_NANOS`], the process continues at once.
pub const TRACED_HELD: u8 = 3;

/// User space writes the time into the map `HEARTBEAT` several times in this many nanoseconds. If
/// the last time is longer ago, nobody would continue a stopped process.
pub const HEARTBEAT_NANOS: u64 = 2_000_000_000;
