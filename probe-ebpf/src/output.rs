//! Makes the records and writes them to the ring of the current CPU.

use crate::{
    loss,
    maps::{EXECUTED, TRACED},
    registers::Registers,
    ring::{Room, reserve},
    settings,
};
use aya_ebpf::helpers::{bpf_get_current_pid_tgid, bpf_ktime_get_ns};
use ctrace_common::{CONTROL_SLOTS, Change, Record};

/// A process and one of its threads, in the initial pid namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
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

    /// Stands for no thread.
    pub const NONE: Self = Self { pid: 0, tid: 0 };

    #[inline(always)]
    pub fn is_traced(self) -> bool {
        TRACED.get_ptr(self.pid).is_some()
    }
}

/// Returns the current thread, if its probes count.
#[inline(always)]
pub fn traced_task() -> Option<Task> {
    // The launcher itself runs code of ours, and often of the same libraries as the command.
    if settings::LAUNCHES.load() != 0 && EXECUTED.get() == 0 {
        return None;
    }
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

/// What stands for a thread in records and maps, and for its stack pointer.
#[derive(Clone, Copy)]
pub struct Who {
    pub task: Task,
    /// What it is in maps that all processes share: the thread's id, or a number for a goroutine.
    pub key: u32,
    pub sp: u64,
}

impl Who {
    #[inline(always)]
    pub fn thread(task: Task, registers: &Registers<'_>) -> Self {
        Self { task, key: task.tid, sp: registers.sp() }
    }
}

/// Delivers one event and returns its time, or `None` if it is lost. If `ts_ns` is `None`, the time
/// is taken as late as possible, so that an entry's function does not pay for our own work.
#[inline(always)]
pub fn event(task: Task, kind: u8, sp: u64, probe: u32, ts_ns: Option<u64>) -> Option<u64> {
    event_of(Who { task, key: task.tid, sp }, kind, probe, ts_ns)
}

/// Does the same for what may be a goroutine.
#[inline(always)]
pub fn event_of(who: Who, kind: u8, probe: u32, ts_ns: Option<u64>) -> Option<u64> {
    let Who { task, key, sp } = who;
    if let Some(room) = reserve(1) {
        let lost_before = loss::take(key);
        let ts_ns = match ts_ns {
            Some(ts_ns) => ts_ns,
            None => now(),
        };
        room.commit(Record {
            ts_ns,
            sp,
            pid: task.pid,
            tid: task.tid,
            probe,
            kind,
            reserved: 0,
            lost_before,
        });
        return Some(ts_ns);
    }
    loss::note(key);
    None
}

/// Delivers an event of a thread that may be running elsewhere.
#[inline(always)]
pub fn event_of_another(task: Task, kind: u8, probe: u32) {
    let Some(room) = reserve(1) else {
        loss::note_of_another();
        return;
    };
    let Task { pid, tid } = task;
    let ts_ns = now();
    room.commit(Record { ts_ns, sp: 0, pid, tid, probe, kind, reserved: 0, lost_before: 0 });
}

/// Delivers a change in a process, about the current thread or another one. Only a thread itself may
/// touch what is noted of its losses.
#[inline(always)]
pub fn control(task: Task, change: Change) {
    control_of(task, change, task == Task::current());
}

/// Delivers a change that only makes others more exact: it is no loss if there is no room for it.
#[inline(always)]
pub fn control_if_room(task: Task, change: Change) {
    if let Some(room) = reserve(CONTROL_SLOTS) {
        commit_control(room, task, change, loss::take(task.tid));
    }
}

/// Does the same in an interrupt, or in a thread that need not be of a traced process: of neither are
/// losses noted.
#[inline(always)]
pub fn control_anywhere(task: Task, change: Change) {
    control_of(task, change, false);
}

#[inline(always)]
fn control_of(task: Task, change: Change, is_own: bool) {
    if let Some(room) = reserve(CONTROL_SLOTS) {
        let lost_before = if is_own { loss::take(task.tid) } else { 0 };
        commit_control(room, task, change, lost_before);
    } else if is_own {
        loss::note(task.tid);
    } else {
        loss::note_of_another();
    }
}

#[inline(always)]
fn commit_control(room: Room, task: Task, change: Change, lost_before: u16) {
    let record = Record {
        ts_ns: now(),
        sp: 0,
        pid: task.pid,
        tid: task.tid,
        probe: 0,
        kind: change.kind() as u8,
        reserved: 0,
        lost_before,
    };
    room.commit_control(record, change);
}
