//! Brings the eBPF programs of this binary into the kernel.

pub(super) mod diagnostics;
mod loader;
pub(super) mod maps;
pub(super) mod object;
pub(super) mod programs;
pub(super) mod settings;
mod turns;
