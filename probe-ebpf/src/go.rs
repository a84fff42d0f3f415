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
use aya_ebpf::{helpers::generated::bpf_probe_read_user, macros::uprobe, programs::ProbeContext};
use core::{ffi::c_void, mem::MaybeUninit};
use ctrace_common::{Cookie, GoidPlace, Goroutine, Kind, NO_VALUE};

/// The words of a descriptor that are read, with the id. Every version has more. They are read at once: a read
/// costs much, however long it is.
const WORDS: usize = GoidPlace::AT_160.word() + 1;

/// Returns the running goroutine in the place of the thread, and what stands for the stack pointer. A
/// thread that runs no Go code here, such as C functions that Go calls, stays what it is.
#[inline(always)]
fn goroutine(task: Task, cookie: Cookie, registers: &Registers<'_>) -> Who {
    let (address, sp) = (registers.goroutine(), registers.sp());
    let mut words = MaybeUninit::<[u64; WORDS]>::uninit();
    let size = size_of_val(&words) as u32;
    // SAFETY: the helper checks the address itself and fails on a bad one. It fills all words otherwise.
    let words = unsafe {
        if bpf_probe_read_user(words.as_mut_ptr().cast(), size, address as *const c_void) != 0 {
            return Who::thread(task, registers);
        }
        words.assume_init_ref()
    };
    let id = match cookie.goid() {
        GoidPlace::AT_152 => words[GoidPlace::AT_152.word()],
        GoidPlace::AT_160 => words[GoidPlace::AT_160.word()],
        _ => 0,
    };
    let goroutine = Goroutine { address, stack: [words[0], words[1]], id };
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
            let value = #[inline(always)]
            || NO_VALUE;
            aggregate::enter(Caller::in_go(who), cookie.probe(), value, who.sp);
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
    exit::leaves::<true>(&ctx, |cookie| kind(cookie) as u8, goroutine)
}
