//! The ways out of a function: a probe on each `ret` and on each jump that may leave it. Ends of
//! pairs of USDT probes are handled the same way.
//!
//! The probe fires before the instruction, taken or not. So a conditional jump's condition and an
//! indirect jump's target are computed here. The reader decides by the stack pointer whether the
//! frame really ends.

use crate::{
    aggregate::{self, Caller},
    jump, loss,
    output::{Task, Who, event, event_of, now, traced_task},
    payload,
    registers::{Registers, condition_holds},
    settings, thrift,
};
use aya_ebpf::{
    EbpfContext as _, helpers::bpf_get_attach_cookie, macros::uprobe, programs::ProbeContext,
};
use aya_log_ebpf::warn;
use ctrace_common::{Cookie, Kind, NO_CONDITION, NO_INDEX, is_goroutine};

#[uprobe]
pub fn exit_site(ctx: ProbeContext) -> u32 {
    leaves::<false>(&ctx, Cookie::kind, |task, _, registers| Who::thread(task, registers))
}

/// Handles a way out. `GO`: of a function of Go. `kind` returns the kind of its records, and `who` what
/// stands for the thread.
#[inline(always)]
pub fn leaves<const GO: bool>(
    ctx: &ProbeContext,
    kind: impl Fn(Cookie) -> u8,
    who: impl Fn(Task, Cookie, &Registers<'_>) -> Who,
) -> u32 {
    let ts_ns = now();
    let Some(task) = traced_task() else { return 0 };
    let registers = Registers::of(ctx);
    // SAFETY: the helper takes the program's own context.
    let cookie = Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) });
    if cookie.condition() != NO_CONDITION && !condition_holds(cookie.condition(), registers.flags())
    {
        return 0;
    }
    if cookie.index() != NO_INDEX {
        match jump::leaves(cookie.index(), &registers) {
            Some(true) => {}
            Some(false) => return 0,
            None => {
                // An exit may have been missed: that is a loss, not something to guess.
                loss::note(who(task, cookie, &registers).key);
                warn!(ctx, "the target of the indirect jump at {:x} is unreadable", registers.ip());
                return 0;
            }
        }
    }
    let (who, kind) = (who(task, cookie, &registers), kind(cookie));
    if settings::AGGREGATES.load() != 0 {
        let kind = if kind == Kind::ExitJump as u8 { Kind::ExitJump } else { Kind::ExitRet };
        if GO && is_goroutine(who.key) {
            aggregate::leave(Caller::in_go(who), cookie.probe(), kind, who.sp, ts_ns);
            aggregate::forget_idle(who.key);
        } else {
            aggregate::leave(Caller::thread(who.task), cookie.probe(), kind, who.sp, ts_ns);
        }
        return 0;
    }
    if !GO && is_left_out(who, cookie.probe(), kind, ts_ns) {
        return 0;
    }
    event_of(who, kind, cookie.probe(), Some(ts_ns));
    0
}

/// Returns true for the end of a call of a function that was left out. Pairs of USDT probes are not.
#[inline(always)]
fn is_left_out(who: Who, function: u32, kind: u8, ts_ns: u64) -> bool {
    let is_jump = kind == Kind::ExitJump as u8;
    thrift::is_thrifty()
        && (kind == Kind::ExitRet as u8 || is_jump)
        && !thrift::leave(who.key, function, who.sp, ts_ns, is_jump)
}

/// Handles a `ret` of a function whose result is read. At a jump there is none yet.
#[uprobe]
pub fn ret_site_with_values(ctx: ProbeContext) -> u32 {
    let ts_ns = now();
    let Some(task) = traced_task() else { return 0 };
    let registers = Registers::of(&ctx);
    // SAFETY: the helper takes the program's own context.
    let cookie = Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) });
    let (probe, kind) = (cookie.probe(), Kind::ExitRet as u8);
    if is_left_out(Who::thread(task, &registers), probe, kind, ts_ns) {
        return 0;
    }
    if event(task, kind, registers.sp(), probe, Some(ts_ns)).is_some() {
        payload::deliver_result(cookie.index() as u32, task, ts_ns, probe, &registers);
    }
    0
}
