//! The way into the ring of the current CPU.
//!
//! Nobody is woken: user space polls, and a wake-up per record would cost more than the record.

use crate::{
    loss,
    maps::{RINGS, TRACED},
    settings,
};
use aya_ebpf::{
    bindings::BPF_RB_NO_WAKEUP,
    helpers::{bpf_get_current_pid_tgid, bpf_get_smp_processor_id, bpf_ktime_get_ns},
};
use ctrace_common::{Control, Kind, Record};

const NO_WAKEUP: u64 = BPF_RB_NO_WAKEUP as u64;

/// A process and one of its threads, in the initial pid namespace.
#[derive(Clone, Copy)]
pub struct Task {
    pub pid: u32,
    pub tid: u32,
}

impl Task {
    #[inline(always)]
    pub fn current() -> Self {
        let id = bpf_get_current_pid_tgid();
        Self { pid: (id >> 32) as u32, tid: id as u32 }
    }

    #[inline(always)]
    pub fn is_traced(self) -> bool {
        TRACED.get_ptr(self.pid).is_some()
    }
}

/// The current thread, if its probes count.
#[inline(always)]
pub fn traced_task() -> Option<Task> {
    let task = Task::current();
    if settings::FILTER.load() != 0 && !task.is_traced() {
        return None;
    }
    Some(task)
}

#[inline(always)]
pub fn now() -> u64 {
    // SAFETY: a helper without arguments.
    unsafe { bpf_ktime_get_ns() }
}

/// Delivers one event. `ts_ns` is `None` to take the time as late as can be: for entries, so that
/// our own work does not count as the function's.
#[inline(always)]
pub fn event(task: Task, kind: u8, sp: u64, probe: u32, ts_ns: Option<u64>) {
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    if let Some(ring) = RINGS.get(cpu)
        && let Some(mut slot) = ring.reserve(0)
    {
        let lost_before = loss::take(task.tid);
        let ts_ns = match ts_ns {
            Some(ts_ns) => ts_ns,
            None => now(),
        };
        slot.write(Record {
            ts_ns,
            sp,
            pid: task.pid,
            tid: task.tid,
            probe,
            kind,
            reserved: 0,
            lost_before,
        });
        slot.submit(NO_WAKEUP);
        return;
    }
    loss::note(task.tid);
}

/// Delivers a change in a process.
#[inline(always)]
pub fn control(task: Task, kind: Kind, comm: [u8; 16], arg0: u64, arg1: u64) {
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    if let Some(ring) = RINGS.get(cpu)
        && let Some(mut slot) = ring.reserve_untyped::<Control>(0)
    {
        let lost_before = loss::take(task.tid);
        slot.write(Control {
            record: Record {
                ts_ns: now(),
                sp: 0,
                pid: task.pid,
                tid: task.tid,
                probe: 0,
                kind: kind as u8,
                reserved: 0,
                lost_before,
            },
            comm,
            arg0,
            arg1,
        });
        slot.submit(NO_WAKEUP);
        return;
    }
    loss::note(task.tid);
}
