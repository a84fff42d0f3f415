//! Brings the eBPF programs of this binary into the kernel.

pub(super) mod diagnostics;
pub(super) mod loader;
pub(super) mod object;
pub(super) mod programs;
