//! The flush site, the register site, and the section that leads ctrace to them.
//!
//! A site is three nops of 1, 5 and 10 bytes: on each kernel one of them is the cheapest place for
//! a uprobe. It is the first instruction of a called function, so that nothing of value lies below
//! the stack pointer, where some kernels write.

use super::{buffer::Buffer, list::LIST};
use core::arch::naked_asm;

/// A site: 16 bytes aligned to 16, and its USDT note. It has no semaphore: it is called anyway.
macro_rules! site {
    ($name:literal) => {
        concat!(
            ".balign 16
             .globl {site}.site
             .hidden {site}.site
             {site}.site:
             .byte 0x90
             .byte 0x0f, 0x1f, 0x44, 0x00, 0x00
             .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00
             ret\n",
            $crate::__usdt_note!("{site}.site", "ctrace", $name, 0, "8@%rdi")
        )
    };
}

/// Called with each buffer just before it is emptied.
#[unsafe(naked)]
pub(super) extern "C" fn flush(buffer: &Buffer) {
    naked_asm!(
        site!("flush"),
        // The entry of `ctrace_runtime`. The word behind the function refers to it, so that a
        // linker keeps both or neither.
        ".long 775f - .",
        crate::__probes_page!(),
        ".pushsection ctrace_runtime,\"a\",@progbits",
        ".balign 32",
        "775: .long 2",
        ".long {site}.site - .",
        ".long {register}.site - .",
        ".long {list} - .",
        ".long 776f - .",
        ".zero 12",
        ".popsection",
        ".pushsection .rodata.ctrace_runtime,\"a\",@progbits",
        concat!("776: .asciz \"rust ", env!("CARGO_PKG_VERSION"), "\""),
        ".popsection",
        site = sym flush,
        register = sym register,
        list = sym LIST,
    )
}

/// Called once for each thread and buffer, before the first event.
#[unsafe(naked)]
pub(super) extern "C" fn register(buffer: &Buffer) {
    naked_asm!(site!("register"), site = sym register)
}
