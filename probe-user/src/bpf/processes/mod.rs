//! Other processes, as the kernel shows them: which begin and end, their processor time, their memory.

pub(super) mod control;
pub(super) mod cpu_clock;
pub(super) mod memory;
pub(super) mod starts;
pub(super) mod waits;
