//! Values of the map `TRACED`: what happens to a traced process when it executes a new program.

/// It goes on at once.
pub const TRACED: u8 = 1;
/// It is about to become the command of `ctrace run`, whose probes are in place: it goes on, and
/// its later programs are held.
pub const TRACED_LAUNCHED: u8 = 2;
/// It stops before the first instruction of the new program, until user space has put its probes
/// in place and continues it. `arg1` of the Exec record is 1 then.
pub const TRACED_HELD: u8 = 3;
