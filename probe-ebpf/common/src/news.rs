//! The reasons for which the programs of a session wake user space.

/// Another eighth of a ring has been filled.
pub const RING_FILLS: u32 = 0;
/// A traced process executed a program that waits for its probes.
pub const NEW_PROGRAM: u32 = 1;
