//! Entries and returns of functions.
//!
//! `session` runs at both (kernels from 6.13); `entry` and `ret` each run at one of them (older
//! kernels). `session` alone uses `bpf_get_func_ip`, which kernels before 6.6 refuse for user
//! probes.

use crate::{
    aggregate,
    aggregate::Caller,
    condition,
    maps::{SWITCHES, UNRETURNED},
    output::{Task, event, now, traced_task},
    payload,
    registers::Registers,
    restore, settings,
    thrift::{self, Entry},
};
use aya_ebpf::{
    EbpfContext as _,
    helpers::{bpf_get_attach_cookie, bpf_get_func_ip},
    macros::{uprobe, uretprobe},
    programs::{ProbeContext, RetProbeContext},
};
use core::ffi::c_void;
use ctrace_common::{Cookie, Kind, NO_VALUE, RESTORE_ENDING};

/// Tells the kernel to skip the return probe of this call.
const SKIP_RETURN: u32 = 1;

#[inline(always)]
pub fn cookie(ctx: &ProbeContext) -> Cookie {
    // SAFETY: the helper takes the program's own context.
    Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) })
}

/// Returns true if a session's program runs at the entry. The offset in the page identifies nearly
/// every return, without asking the kernel for the address of the site.
#[inline(always)]
fn is_entry(ctx: &ProbeContext, cookie: Cookie, ip: u64) -> bool {
    // SAFETY: the helper takes the program's own context.
    cookie.may_lie_at(ip) && ip == unsafe { bpf_get_func_ip(ctx.as_ptr()) }
}

/// Returns true if calls of this function get no return probe.
#[inline(always)]
fn is_spared(function: u32) -> bool {
    if SWITCHES.get() != 0 || restore::end_of_session() >= RESTORE_ENDING {
        return true;
    }
    // SAFETY: the map's values live as long as the map, and user space writes a word whole.
    let word = UNRETURNED.get_ptr(function / 64).map_or(0, |word| unsafe { word.read_volatile() });
    word >> (function % 64) & 1 != 0
}

/// The values that are read of a call.
type Values = u8;
const NONE: Values = 0;
/// Its arguments and its result, which are delivered.
const DELIVERED: Values = 1;
/// An argument, by which calls are counted apart.
const COUNTED: Values = 2;

/// Handles both ends of a call. `CONDITION`: if its arguments meet one.
#[inline(always)]
fn both<const VALUES: Values, const CONDITION: bool>(ctx: *mut c_void) -> u32 {
    let ctx = ProbeContext::new(ctx);
    let Some(task) = traced_task() else { return SKIP_RETURN };
    let registers = Registers::of(&ctx);
    let cookie = cookie(&ctx);
    if is_entry(&ctx, cookie, registers.ip()) {
        if CONDITION && !condition::is_met(task, cookie, &registers) {
            return SKIP_RETURN;
        }
        if !enter::<VALUES>(task, cookie, &registers) {
            return SKIP_RETURN;
        }
        if settings::GUARDS.load() != 0 && is_spared(cookie.probe()) {
            return SKIP_RETURN;
        }
    } else {
        leave::<VALUES>(task, now(), cookie, &registers);
    }
    0
}

/// Returns true if calls are counted, and make no events.
#[inline(always)]
fn counts<const VALUES: Values>() -> bool {
    VALUES == COUNTED || VALUES == NONE && settings::AGGREGATES.load() != 0
}

/// Returns false if the call is left out, and so is its end.
#[inline(always)]
fn enter<const VALUES: Values>(task: Task, cookie: Cookie, registers: &Registers<'_>) -> bool {
    if counts::<VALUES>() {
        // See `main.rs`.
        let value = #[inline(always)]
        || match VALUES {
            COUNTED => aggregate::values::number(task, cookie, registers),
            _ => NO_VALUE,
        };
        return aggregate::enter(Caller::thread(task), cookie.probe(), value, registers.sp());
    }
    let delivers = VALUES == DELIVERED;
    if thrift::is_thrifty() {
        match thrift::enter(task, cookie.probe(), registers.sp(), delivers) {
            Entry::Deliver => {}
            Entry::Hold => return true,
            Entry::LeaveOut => return false,
        }
    }
    let time = event(task, Kind::Enter as u8, registers.sp(), cookie.probe(), None);
    if delivers && let Some(ts_ns) = time {
        payload::deliver::<{ payload::ALL_TEXTS }>(task, ts_ns, cookie, registers);
    }
    true
}

#[inline(always)]
fn leave<const VALUES: Values>(task: Task, ts_ns: u64, cookie: Cookie, registers: &Registers<'_>) {
    let sp = registers.entry_sp_at_return();
    if counts::<VALUES>() {
        return aggregate::leave(Caller::thread(task), cookie.probe(), Kind::Return, sp, ts_ns);
    }
    if thrift::is_thrifty() && !thrift::leave(task.tid, cookie.probe(), sp, ts_ns, false) {
        return;
    }
    let time = event(task, Kind::Return as u8, sp, cookie.probe(), Some(ts_ns));
    if VALUES == DELIVERED && time.is_some() {
        let element = cookie.index() as u32 + 1;
        payload::deliver_result(element, task, ts_ns, cookie.probe(), registers);
    }
}

/// The macro for probes would drop the result, which tells the kernel about this call's return.
// SAFETY: the only function of this name, and a section of that kind of programs.
#[unsafe(no_mangle)]
#[unsafe(link_section = "uprobe")]
pub extern "C" fn session(ctx: *mut c_void) -> u32 {
    both::<NONE, false>(ctx)
}

/// Handles functions with values, in a separate program so that other calls cost nothing more. The
/// same holds for those with a condition.
// SAFETY: as above.
#[unsafe(no_mangle)]
#[unsafe(link_section = "uprobe")]
pub extern "C" fn session_with_values(ctx: *mut c_void) -> u32 {
    both::<DELIVERED, false>(ctx)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
#[unsafe(link_section = "uprobe")]
pub extern "C" fn session_with_condition(ctx: *mut c_void) -> u32 {
    both::<DELIVERED, true>(ctx)
}

/// Counts calls of a function apart by a value.
// SAFETY: as above.
#[unsafe(no_mangle)]
#[unsafe(link_section = "uprobe")]
pub extern "C" fn session_by_value(ctx: *mut c_void) -> u32 {
    both::<COUNTED, false>(ctx)
}

#[uprobe]
pub fn entry(ctx: ProbeContext) -> u32 {
    entered::<NONE, false>(&ctx)
}

#[uprobe]
pub fn entry_with_values(ctx: ProbeContext) -> u32 {
    entered::<DELIVERED, false>(&ctx)
}

#[uprobe]
pub fn entry_with_condition(ctx: ProbeContext) -> u32 {
    entered::<DELIVERED, true>(&ctx)
}

#[uprobe]
pub fn entry_by_value(ctx: ProbeContext) -> u32 {
    entered::<COUNTED, false>(&ctx)
}

#[inline(always)]
fn entered<const VALUES: Values, const CONDITION: bool>(ctx: &ProbeContext) -> u32 {
    if let Some(task) = traced_task() {
        let (cookie, registers) = (cookie(ctx), Registers::of(ctx));
        if !CONDITION || condition::is_met(task, cookie, &registers) {
            enter::<VALUES>(task, cookie, &registers);
        }
    }
    0
}

#[uretprobe]
pub fn ret(ctx: RetProbeContext) -> u32 {
    returned::<NONE>(&ctx)
}

#[uretprobe]
pub fn ret_with_values(ctx: RetProbeContext) -> u32 {
    returned::<DELIVERED>(&ctx)
}

#[inline(always)]
fn returned<const VALUES: Values>(ctx: &RetProbeContext) -> u32 {
    let ts_ns = now();
    let ctx = ProbeContext::new(ctx.as_ptr());
    if let Some(task) = traced_task() {
        leave::<VALUES>(task, ts_ns, cookie(&ctx), &Registers::of(&ctx));
    }
    0
}
