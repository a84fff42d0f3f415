//! Places without duration: USDT notes.

use crate::{
    output::{event, traced_task},
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
