//! `ctrace_enter` and `ctrace_exit`, functions for tools and languages without scopes.
//!
//! They only carry a USDT note (`ctrace:enter`, `ctrace:exit`, the name as argument) and begin with
//! a nop, on which a uprobe is cheap. The note names the second nop: the kernel refuses a probe
//! with a semaphore and one without on the same instruction, so one tool could not probe the
//! function while another has the USDT probe. They are weak, since a program may have several
//! copies of this crate.

use core::arch::naked_asm;
use core::ffi::{CStr, c_char};

/// Defines a function of two nops with its weak name and its note.
macro_rules! named {
    ($name:literal) => {
        concat!(
            ".balign 16
             .globl {this}.named
             .hidden {this}.named
             {this}.named:
             nop
             770: nop
             ret
             .ifndef ctrace_",
            $name,
            "
             .weak ctrace_",
            $name,
            "
             .type ctrace_",
            $name,
            ", @function
             .set ctrace_",
            $name,
            ", {this}.named
             .size ctrace_",
            $name,
            ", 3
             .endif\n",
            $crate::__usdt_semaphore!("ctrace", $name),
            $crate::__usdt_note!(
                "770b",
                "ctrace",
                $name,
                concat!("ctrace_", $name, "_semaphore"),
                "8@%rdi"
            )
        )
    };
}

/// Reports to probes of `ctrace:enter`, or of this function, that something of this name begins.
#[inline(always)]
pub fn ctrace_enter(name: &CStr) {
    enter(name.as_ptr());
}

/// Reports to probes of `ctrace:exit`, or of this function, that something of this name ends.
#[inline(always)]
pub fn ctrace_exit(name: &CStr) {
    exit(name.as_ptr());
}

#[unsafe(naked)]
pub(super) extern "C" fn enter(name: *const c_char) {
    naked_asm!(named!("enter"), this = sym enter)
}

#[unsafe(naked)]
pub(super) extern "C" fn exit(name: *const c_char) {
    naked_asm!(named!("exit"), this = sym exit)
}
