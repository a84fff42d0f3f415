//! USDT notes: points, which have no duration, and starts of pairs. Their cookies tell which. Ends
//! of pairs are in `exit`, which takes the time first.

use crate::{
    output::{event, traced_task},
    payload::{self, ENDED_TEXTS, NO_TEXTS, Texts},
    registers::Registers,
};
use aya_ebpf::{
    EbpfContext as _, helpers::bpf_get_attach_cookie, macros::uprobe, programs::ProbeContext,
};
use ctrace_common::Cookie;

#[uprobe]
pub fn point(ctx: ProbeContext) -> u32 {
    if let Some(task) = traced_task() {
        // SAFETY: the helper takes the program's own context.
        let cookie = Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) });
        event(task, cookie.kind(), Registers::of(&ctx).sp(), cookie.probe(), None);
    }
    0
}

/// Handles sites with values, in a separate program so that others cost nothing more.
#[uprobe]
pub fn point_with_values(ctx: ProbeContext) -> u32 {
    with_values::<NO_TEXTS>(&ctx)
}

/// Handles sites with texts among their values. Only new kernels check it in an instant.
#[uprobe]
pub fn point_with_texts(ctx: ProbeContext) -> u32 {
    with_values::<ENDED_TEXTS>(&ctx)
}

#[inline(always)]
fn with_values<const TEXTS: Texts>(ctx: &ProbeContext) -> u32 {
    if let Some(task) = traced_task() {
        // SAFETY: the helper takes the program's own context.
        let cookie = Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) });
        let registers = Registers::of(ctx);
        let time = event(task, cookie.kind(), registers.sp(), cookie.probe(), None);
        if let Some(ts_ns) = time {
            payload::deliver::<TEXTS>(task, ts_ns, cookie, &registers);
        }
    }
    0
}
