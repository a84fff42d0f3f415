//! Entries and ways out of Go's functions, whose records have goroutines in the place of threads.
//!
//! The programs are separate, so that functions of other languages pay for nothing.

use crate::{
    aggregate, exit,
    function::cookie,
    output::{Task, event, traced_task},
    registers::Registers,
    settings,
};
use aya_ebpf::{helpers::bpf_probe_read_user, macros::uprobe, programs::ProbeContext};
use ctrace_common::{Goroutine, Kind};

/// Returns the running goroutine in the place of the thread, and what stands for the stack pointer. A
/// thread that runs no Go code here, such as C functions that Go calls, stays what it is.
#[inline(always)]
pub fn goroutine(task: Task, registers: &Registers<'_>) -> (Task, u64) {
    let (address, sp) = (registers.goroutine(), registers.sp());
    // SAFETY: the helper checks the address itself and fails on a bad one.
    let stack = unsafe { bpf_probe_read_user(address as *const [u64; 2]) };
    if let Ok(stack) = stack {
        let goroutine = Goroutine { address, stack };
        if let Some(place) = goroutine.place(sp) {
            return (Task { pid: task.pid, tid: goroutine.thread(task.pid) }, place);
        }
    }
    (task, sp)
}

#[uprobe]
pub fn go_entry(ctx: ProbeContext) -> u32 {
    if let Some(task) = traced_task() {
        let (task, sp) = goroutine(task, &Registers::of(&ctx));
        let probe = cookie(&ctx).probe();
        if settings::AGGREGATES.load() != 0 {
            aggregate::enter(task, probe, sp);
        } else {
            event(task, Kind::Enter as u8, sp, probe, None);
        }
    }
    0
}

#[uprobe]
pub fn go_exit_site(ctx: ProbeContext) -> u32 {
    exit::leaves(&ctx, goroutine)
}
