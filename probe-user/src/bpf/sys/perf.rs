//! perf_event_open(2): one uprobe event per place, and a counter of CPU time.

use super::{Attr, Syscall};
use std::{ffi::CStr, io, os::fd::OwnedFd};

/// `sizeof(struct perf_event_attr)` up to `config2`'s neighbours, version 5.
const ATTR_SIZE: u32 = 112;

pub(crate) struct UprobeEvent<'a> {
    /// The unit's number in /sys/bus/event_source/devices/uprobe/type.
    pub(crate) unit: u32,
    /// The bit of `config` that asks for the return.
    pub(crate) return_bit: u32,
    pub(crate) at_return: bool,
    pub(crate) path: &'a CStr,
    pub(crate) offset: u64,
    pub(crate) ref_ctr_offset: u64,
    pub(crate) pid: Option<u32>,
}

pub(crate) fn open_uprobe(event: &UprobeEvent<'_>) -> io::Result<OwnedFd> {
    let at_return = if event.at_return { 1 << event.return_bit } else { 0 };
    let attr = Attr::new()
        .u32(0, event.unit)
        .u32(4, ATTR_SIZE)
        .u64(8, at_return | event.ref_ctr_offset << 32)
        .u64(16, 1) // sample_period
        .u32(48, 1) // wakeup_events
        .pointer(56, event.path.as_ptr())
        .u64(64, event.offset);
    let (pid, cpu) = match event.pid {
        Some(pid) => (pid as i32, -1),
        None => (-1, 0),
    };
    Syscall::PerfEventOpen { attr: &attr, pid, cpu }.run_for_fd()
}

/// Opens a CPU time counter of a thread and its future threads, or threads and processes.
pub(crate) fn open_cpu_clock(tid: u32, children: bool) -> io::Result<OwnedFd> {
    const PERF_TYPE_SOFTWARE: u32 = 1;
    const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;
    const INHERIT: u64 = 1 << 1;
    const INHERIT_THREAD: u64 = 1 << 35;
    let inherit = if children { INHERIT } else { INHERIT | INHERIT_THREAD };
    let attr = Attr::new()
        .u32(0, PERF_TYPE_SOFTWARE)
        .u32(4, ATTR_SIZE)
        .u64(8, PERF_COUNT_SW_TASK_CLOCK)
        .u64(40, inherit);
    Syscall::PerfEventOpen { attr: &attr, pid: tid as i32, cpu: -1 }.run_for_fd()
}
