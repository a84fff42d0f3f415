//! The changes in the traced processes: forks, execs, exits, renames.
//!
//! Raw tracepoints provide kernel pointers. The offsets of the fields come from the running
//! kernel's BTF through `settings`.

use crate::{
    admit::admit,
    aggregate,
    kernel::Kernel,
    loss,
    maps::{EXECUTED, GUARDED, HEARTBEAT, TRACED},
    marker, news,
    output::{Task, control, now},
    python, settings, thrift,
};
use aya_ebpf::{
    helpers::{bpf_get_current_comm, bpf_probe_read_kernel_str_bytes, generated::bpf_send_signal},
    macros::raw_tracepoint,
    programs::RawTracePointContext,
};
use aya_log_ebpf::warn;
use ctrace_common::{Change, HEARTBEAT_NANOS, NEW_PROGRAM, TRACED_HELD, TRACED_LAUNCHED};

/// `SIGNAL_GROUP_EXIT`: the whole process was told to exit, with one status for all threads.
const SIGNAL_GROUP_EXIT: u32 = 4;

const SIGSTOP: u32 = 19;

#[inline(always)]
fn current_comm() -> [u8; 16] {
    bpf_get_current_comm().unwrap_or_default()
}

/// A child has the hijacked frames of its parent on its stack, also if it is not followed.
#[inline(always)]
fn guard_child(parent: Task, child: Kernel) {
    if GUARDED.get_ptr(parent.pid).is_some()
        && let Some(child) = child.task()
        && child.pid != parent.pid
    {
        // A full set leaves the child without guards, as it would be without ctrace's care.
        let _ = GUARDED.insert(child.pid, ctrace_common::GUARDED, 0);
    }
}

#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn on_fork(ctx: RawTracePointContext) -> i32 {
    let parent = Task::current();
    guard_child(parent, Kernel(ctx.arg(1)));
    if !parent.is_traced() {
        return 0;
    }
    let Some(child) = Kernel(ctx.arg(1)).task() else {
        loss::note(parent.tid);
        warn!(&ctx, "the child of process {} is unreadable", parent.pid);
        return 0;
    };
    if settings::FOLLOW.load() != 0 && child.pid != parent.pid {
        match TRACED.insert(child.pid, ctrace_common::TRACED, 0) {
            Ok(()) => python::inherit(parent.pid, child.pid),
            Err(_) => warn!(&ctx, "too many processes: process {} is not traced", child.pid),
        }
    }
    let comm = current_comm();
    control(parent, Change::Fork { comm, child: child.pid, child_tid: child.tid });
    0
}

/// Returns true if user space runs: it has to continue a stopped process.
#[inline(always)]
fn somebody_is_there() -> bool {
    let Some(beat) = HEARTBEAT.get_ptr(0) else { return false };
    // SAFETY: the map's values live as long as the map, and user space writes the word whole.
    let beat = unsafe { beat.read_volatile() };
    now().saturating_sub(beat) < HEARTBEAT_NANOS
}

/// Stops a process that is to be held before its new program runs. Returns true if it will stop.
#[inline(always)]
fn hold(task: Task) -> bool {
    let Some(mode) = TRACED.get_ptr_mut(task.pid) else { return false };
    // SAFETY: the map's values live as long as the map, a byte is written whole, and the helper
    // takes a number.
    unsafe {
        match *mode {
            TRACED_LAUNCHED => *mode = TRACED_HELD,
            TRACED_HELD if somebody_is_there() => return bpf_send_signal(SIGSTOP) == 0,
            _ => {}
        }
    }
    false
}

#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn on_exec(ctx: RawTracePointContext) -> i32 {
    let task = Task::current();
    if task.is_traced() || admit(task, Kernel(ctx.arg(2))) {
        // The new program has not run yet, and the exec cannot fail any more.
        EXECUTED.add(1);
        python::forget(task.pid);
        // The thread that calls exec becomes the process's only one, under the process's id. No exit
        // is reported under the id that it had.
        let by: u32 = ctx.arg(1);
        marker::forget(by);
        aggregate::end_thread(by);
        thrift::end_thread(by);
        python::end_thread(by);
        if by != task.tid {
            loss::forget(by);
        }
        let held = hold(task);
        control(task, Change::Exec { comm: current_comm(), by, held });
        news::wake(NEW_PROGRAM);
    }
    0
}

/// Runs before the memory of the old program is gone. The exec may still fail.
#[raw_tracepoint(tracepoint = "sched_prepare_exec")]
pub fn on_prepare_exec(_ctx: RawTracePointContext) -> i32 {
    let task = Task::current();
    if task.is_traced() {
        marker::deliver_rest(task);
    }
    0
}

#[raw_tracepoint(tracepoint = "sched_process_exit")]
pub fn on_exit(ctx: RawTracePointContext) -> i32 {
    let task = Task::current();
    // This comes before the check whether the process is traced: another thread that ends at the
    // same moment may have reported the end of the process already.
    marker::deliver_rest(task);
    marker::forget(task.tid);
    aggregate::end_thread(task.tid);
    thrift::end_thread(task.tid);
    python::end_thread(task.tid);
    if !task.is_traced() {
        loss::forget(task.tid);
        if GUARDED.get_ptr(task.pid).is_some()
            && let Some(Some(_)) = last_status(Kernel(ctx.arg(0)))
        {
            let _ = GUARDED.remove(task.pid);
        }
        return 0;
    }
    let comm = current_comm();
    let work = work_of(Kernel(ctx.arg(0))).unwrap_or(0);
    control(task, Change::ThreadExit { comm, work });
    match last_status(Kernel(ctx.arg(0))) {
        // Two threads that end at once may both find no other thread left. The one that removes the
        // process from the set reports its end.
        Some(Some(status)) => {
            let _ = GUARDED.remove(task.pid);
            python::forget(task.pid);
            if TRACED.remove(task.pid).is_ok() {
                control(task, Change::ProcessExit { comm, status });
            }
        }
        Some(None) => {}
        None => {
            loss::note(task.tid);
            warn!(&ctx, "the end of process {} is unreadable", task.pid);
        }
    }
    loss::forget(task.tid);
    0
}

/// Returns for how long a thread had a processor or waited for one. `None` if this kernel does not tell, or if
/// the thread never gave up a processor by itself: then it has not slept.
#[inline(always)]
fn work_of(task: Kernel) -> Option<u64> {
    if settings::TASK_USED.load() == 0 {
        return None;
    }
    let yields: u64 = task.read(&settings::TASK_YIELDS)?;
    let used: u64 = task.read(&settings::TASK_USED)?;
    let queued: u64 = task.read(&settings::TASK_QUEUED)?;
    (yields != 0 && used != 0).then_some(used.saturating_add(queued))
}

/// Returns the wait status if this is the process's last thread; `None` if that cannot be read.
#[inline(always)]
fn last_status(task: Kernel) -> Option<Option<u32>> {
    let signal = task.pointer(&settings::TASK_SIGNAL)?;
    let live: u32 = signal.read(&settings::SIGNAL_LIVE)?;
    if live != 0 {
        return Some(None);
    }
    let flags: u32 = signal.read(&settings::SIGNAL_FLAGS)?;
    if flags & SIGNAL_GROUP_EXIT != 0 {
        return Some(Some(signal.read(&settings::SIGNAL_GROUP_EXIT_CODE)?));
    }
    let leader = task.pointer(&settings::TASK_GROUP_LEADER)?;
    Some(Some(leader.read(&settings::TASK_EXIT_CODE)?))
}

#[raw_tracepoint(tracepoint = "task_rename")]
pub fn on_rename(ctx: RawTracePointContext) -> i32 {
    // A thread may rename another one of its process.
    let Some(task) = Kernel(ctx.arg(0)).task() else { return 0 };
    if !task.is_traced() {
        return 0;
    }
    let mut comm = [0u8; 16];
    let name: u64 = ctx.arg(1);
    // SAFETY: the helper checks the address itself and fails on a bad one.
    let read = unsafe { bpf_probe_read_kernel_str_bytes(name as *const u8, &mut comm) };
    if read.is_err() {
        loss::note_of_another();
        warn!(&ctx, "the new name of thread {} is unreadable", task.tid);
        return 0;
    }
    control(task, Change::Rename { comm });
    0
}
