//! Points, which have no duration: USDT notes, and the values of their events.

use crate::{
    output::{event, traced_task},
    payload,
    registers::Registers,
};
use aya_ebpf::{
    EbpfContext as _, helpers::bpf_get_attach_cookie, macros::uprobe, programs::ProbeContext,
};
use ctrace_common::{Cookie, Kind};

#[uprobe]
pub fn point(ctx: ProbeContext) -> u32 {
    if let Some(task) = traced_task() {
        // SAFETY: the helper takes the program's own context.
        let cookie = Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) });
        event(task, Kind::Point as u8, Registers::of(&ctx).sp(), cookie.probe(), None);
    }
    0
}

/// Handles points with values, in a separate program so that other points cost nothing more.
#[uprobe]
pub fn point_with_values(ctx: ProbeContext) -> u32 {
    if let Some(task) = traced_task() {
        // SAFETY: the helper takes the program's own context.
        let cookie = Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) });
        let registers = Registers::of(&ctx);
        let time = event(task, Kind::Point as u8, registers.sp(), cookie.probe(), None);
        if let Some(ts_ns) = time {
            payload::deliver::<false>(task, ts_ns, cookie, &registers);
        }
    }
    0
}
