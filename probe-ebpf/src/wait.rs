//! These programs report when threads of the traced processes have no processor, and why.
//!
//! A wait has a record where its thread loses the processor, one where it is woken, and one where it
//! gets a processor again. So user space takes a wait for a call inside the calls of its thread. The
//! programs are loaded only where somebody asks for waits.
//!
//! They run at every switch of every thread of the machine, so they leave out what user space would
//! drop: waits of threads that are surely in no traced call.
//!
//! One more program reports who wakes these threads, where somebody asks for that.

use crate::{
    interrupt::woken_from,
    kernel::Kernel,
    maps::{ALL_WAITS, EXECUTED, SWITCHES},
    output::{Task, control_anywhere, event, event_of_another},
    settings,
};
use aya_ebpf::{
    helpers::{
        bpf_get_current_comm, bpf_probe_read_kernel,
        generated::{bpf_get_current_task_btf, bpf_task_pt_regs},
    },
    macros::raw_tracepoint,
    programs::RawTracePointContext,
};
use core::arch::asm;
use ctrace_common::{Cause, Change, Kind, NO_SYSCALL, WaitState, WokenFrom};

/// The kernel's bits for states of threads.
const UNINTERRUPTIBLE: u32 = 2;
const STOPPED_OR_TRACED: u32 = 4 | 8;
/// A thread that never runs again.
const GONE: u32 = 0x10 | 0x20 | 0x80;

/// The offset of `orig_ax` in `pt_regs` on x86-64, which never changes.
const ORIG_AX: u64 = 15 * 8;

/// The kernel's system calls for probes.
const URETPROBE: i64 = 335;
const UPROBE: i64 = 336;

/// Returns true if waits of this thread count.
#[inline(always)]
fn counts(task: Task, kernel: Kernel) -> bool {
    task.pid != 0
        && task.is_traced()
        && (settings::LAUNCHES.load() == 0 || EXECUTED.get() != 0)
        && may_be_inside(kernel)
}

/// Returns false if the thread is surely in no traced call. Nothing of what it looks at changes while
/// the thread has no processor, so the records of one wait are all there, or none is.
///
/// Where all traced calls have return probes, the kernel keeps a list of those that are open. A call
/// is on it a moment after the program at its entry has run, and leaves it a moment before the one at
/// its return runs. These moments are outside of the program's system calls.
#[inline(always)]
fn may_be_inside(task: Kernel) -> bool {
    // SAFETY: the map's values live as long as the map, and user space writes the word whole.
    let all = ALL_WAITS.get_ptr(0).is_none_or(|all| unsafe { all.read_volatile() } != 0);
    if all || SWITCHES.get() != 0 {
        return true;
    }
    let utask = task.word(&settings::TASK_UTASK);
    utask != 0
        && (Kernel(utask).word(&settings::UTASK_RETURN_INSTANCES) != 0
            || syscall(task) == NO_SYSCALL)
}

/// Returns the number of the system call that a thread is in.
#[inline(always)]
fn syscall(task: Kernel) -> u16 {
    let current = Kernel::current();
    // SAFETY: the helpers return the current thread and the place of its saved registers. The
    // instruction makes a number of the two: the verifier allows no other arithmetic with them.
    let registers = unsafe {
        let task = bpf_get_current_task_btf();
        let mut behind = bpf_task_pt_regs(task) as u64;
        asm!("{0} -= {1}", inout(reg) behind, in(reg) task as u64);
        current.0.wrapping_add(behind)
    };
    // They are at the same place of every stack.
    let place = registers.wrapping_sub(current.word(&settings::TASK_STACK));
    let at = task.word(&settings::TASK_STACK).wrapping_add(place).wrapping_add(ORIG_AX);
    // SAFETY: the helper checks the address itself and fails on a bad one.
    match unsafe { bpf_probe_read_kernel(at as *const i64) } {
        // Return probes and fast probes enter the kernel by system calls of their own.
        Ok(URETPROBE | UPROBE) => NO_SYSCALL,
        Ok(number @ 0..) => u16::try_from(number).unwrap_or(NO_SYSCALL).min(NO_SYSCALL - 1),
        // Outside of system calls it is -1.
        _ => NO_SYSCALL,
    }
}

/// Returns the state of the thread that is losing its processor. `None`: it is gone.
#[inline(always)]
fn state(is_preempted: bool, state: u32) -> Option<WaitState> {
    Some(match state {
        _ if is_preempted || state == 0 => WaitState::Preempted,
        _ if state & GONE != 0 => return None,
        _ if state & STOPPED_OR_TRACED != 0 => WaitState::Stopped,
        _ if state & UNINTERRUPTIBLE != 0 => WaitState::Uninterruptible,
        _ => WaitState::Interruptible,
    })
}

/// Its arguments are: whether the thread is preempted, the thread, the next one, the thread's state.
/// Before Linux 5.18 there is no state, and the kernel refuses the program.
#[raw_tracepoint(tracepoint = "sched_switch")]
pub fn on_switch(ctx: RawTracePointContext) -> i32 {
    let (task, current) = (Task::current(), Kernel(ctx.arg(1)));
    if counts(task, current)
        && let Some(state) = state(ctx.arg::<u64>(0) as u8 != 0, ctx.arg(3))
    {
        let syscall = if state == WaitState::Preempted { NO_SYSCALL } else { syscall(current) };
        event(task, Kind::WaitBegin as u8, 0, Cause::new(state, syscall).0, None);
    }
    let next = Kernel(ctx.arg(2));
    if let Some(task) = next.task()
        && counts(task, next)
    {
        // It does not run yet, so nobody else touches what is noted of its losses.
        event(task, Kind::WaitEnd as u8, 0, Cause::new(WaitState::Preempted, NO_SYSCALL).0, None);
    }
    0
}

#[raw_tracepoint(tracepoint = "sched_wakeup")]
pub fn on_wakeup(ctx: RawTracePointContext) -> i32 {
    let woken = Kernel(ctx.arg(0));
    if let Some(task) = woken.task()
        && counts(task, woken)
    {
        let cause = Cause::new(WaitState::Woken, NO_SYSCALL);
        event_of_another(task, Kind::WaitBegin as u8, cause.0);
    }
    0
}

/// Runs in the context of who wakes the thread. `sched_wakeup` need not: it may be on the processor of the
/// thread.
#[raw_tracepoint(tracepoint = "sched_waking")]
pub fn on_waking(ctx: RawTracePointContext) -> i32 {
    let woken = Kernel(ctx.arg(0));
    if let Some(task) = woken.task()
        && counts(task, woken)
    {
        let from = woken_from();
        let (waker, comm) = match from {
            WokenFrom::Thread => (Task::current(), bpf_get_current_comm().unwrap_or_default()),
            _ => (Task::NONE, [0; 16]),
        };
        control_anywhere(waker, Change::Wake { comm, woken: task.pid, woken_tid: task.tid, from });
    }
    0
}
