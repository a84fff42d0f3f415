//! Checks that process ids mean the same here as in the kernel.
//!
//! The eBPF programs see the ids of the initial pid namespace. With other ids ctrace would watch,
//! and even stop, unrelated processes.

use crate::bpf::BpfError;
use std::path::Path;

/// The kernel gives the initial namespace this number (`PROC_PID_INIT_INO`).
const INITIAL: &str = "pid:[4026531836]";

pub(crate) fn require_initial() -> Result<(), BpfError> {
    // If /proc tells nothing, tracing is allowed.
    match std::fs::read_link("/proc/self/ns/pid") {
        Ok(own) if own != Path::new(INITIAL) => Err(BpfError::PidNamespace),
        _ => Ok(()),
    }
}
