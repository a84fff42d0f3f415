//! Entries and ways out of Go's functions, whose records have goroutines in the place of threads.
//!
//! The programs are separate, so that functions of other languages pay for nothing.

use crate::{
    aggregate::{self, Caller},
    exit,
    function::cookie,
    output::{Task, Who, event_of, traced_task},
    registers::Registers,
    settings,
};
use aya_ebpf::{helpers::bpf_probe_read_user, macros::uprobe, programs::ProbeContext};
use ctrace_common::{Cookie, Goroutine, Kind};

/// Returns the running goroutine in the place of the thread, and what stands for the stack pointer. A
/// thread that runs no Go code here, such as C functions that Go calls, stays what it is.
#[inline(always)]
fn goroutine(task: Task, cookie: Cookie, registers: &Registers<'_>) -> Who {
    let (address, sp) = (registers.goroutine(), registers.sp());
    // SAFETY: the helper checks the address itself and fails on a bad one.
    let stack = unsafe { bpf_probe_read_user(address as *const [u64; 2]) };
    let Ok(stack) = stack else { return Who::thread(task, registers) };
    let id = match cookie.goid().bytes() {
        // SAFETY: as above.
        Some(bytes) => unsafe { bpf_probe_read_user(address.wrapping_add(bytes) as *const u64) },
        None => Ok(0),
    };
    let goroutine = Goroutine { address, stack, id: id.unwrap_or(0) };
    let Some(place) = goroutine.place(sp) else { return Who::thread(task, registers) };
    Who {
        task: Task { pid: task.pid, tid: goroutine.thread(task.pid) },
        key: goroutine.key(task.pid),
        sp: place,
    }
}

#[uprobe]
pub fn go_entry(ctx: ProbeContext) -> u32 {
    if let Some(task) = traced_task() {
        let cookie = cookie(&ctx);
        let who = goroutine(task, cookie, &Registers::of(&ctx));
        if settings::AGGREGATES.load() != 0 {
            aggregate::enter(Caller::in_go(who), cookie.probe(), who.sp);
        } else {
            event_of(who, Kind::Enter as u8, cookie.probe(), None);
        }
    }
    0
}

#[uprobe]
pub fn go_exit_site(ctx: ProbeContext) -> u32 {
    let kind = |cookie: Cookie| match cookie.is_jump_of_go() {
        true => Kind::ExitJump,
        false => Kind::ExitRet,
    };
    exit::leaves(&ctx, |cookie| kind(cookie) as u8, goroutine)
}
