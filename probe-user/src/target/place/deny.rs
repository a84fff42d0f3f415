//! Lists functions that are never traced or never get a return probe, with the reason for people.
//!
//! An entry probe changes no register and no memory, so few places are refused for it: those that
//! are no function or no code. A return probe overwrites the return address. So a function gets
//! none if anything reads that address, keeps it, or returns through it twice.

use crate::target::place::guards::names;
use crate::target::plan::GuardKind;
use crate::target::read::budget::TooLarge;
use std::fmt;

/// The reason why a function cannot be traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The address is not in a section of code.
    NotCode,
    /// A stub of the procedure linkage table.
    LinkerStub,
    /// The symbol has no size and no unwind entry tells one.
    NoSize,
    /// A part of another function, by its name or because it starts with a frame built elsewhere.
    Part,
    /// The address lies inside another function.
    InsideAnother,
    /// The kernel's signal return.
    SignalReturn,
    /// There is no caller: `_start` and the first code on a new stack.
    NoCaller,
    /// A name of a special function, with the reason.
    Special(&'static str),
    /// The bytes at its start are no instructions.
    NotInstructions,
    /// The kernel or common sense forbids a probe on its first instruction.
    FirstInstruction(&'static str),
    /// A USDT note that leads to something other than a nop.
    NoNop,
    /// Its object used up its time.
    TooLarge(TooLarge),
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCode => out.write_str("not in a section of code"),
            Self::LinkerStub => out.write_str("a stub of the linker, not a function"),
            Self::NoSize => out.write_str("its extent is unknown: no size and no unwind entry"),
            Self::Part => out.write_str("a part of another function, entered by a jump"),
            Self::InsideAnother => out.write_str("a label inside another function"),
            Self::SignalReturn => out.write_str("the signal return: not called by anyone"),
            Self::NoCaller => out.write_str("the first code on its stack: it never returns"),
            Self::Special(why) => out.write_str(why),
            Self::NotInstructions => out.write_str("its bytes are data, not instructions"),
            Self::FirstInstruction(why) => {
                write!(out, "no probe fits its first instruction: {why}")
            }
            Self::NoNop => out.write_str("its note does not lead to a nop"),
            Self::TooLarge(why) => write!(out, "its object {why}"),
        }
    }
}

/// Refuses a function by its name.
pub(super) fn refused_by_name(name: &str) -> Option<Refusal> {
    if is_part_name(name) {
        return Some(Refusal::Part);
    }
    let name = bare(name);
    match name {
        "_start" | "__start_context" | "__libc_start_call_main_context" => Some(Refusal::NoCaller),
        "__restore_rt" | "__restore" => Some(Refusal::SignalReturn),
        "_init" | "_fini" => Some(Refusal::Special("pieced together by the linker")),
        "mcount"
        | "_mcount"
        | "__fentry__"
        | "__return__"
        | "__cyg_profile_func_enter"
        | "__cyg_profile_func_exit" => Some(Refusal::Special("an instrumentation hook")),
        "vfork" | "__vfork" | "__libc_vfork" => {
            Some(Refusal::Special("returns twice on the same stack"))
        }
        "clone"
        | "__clone"
        | "clone3"
        | "__clone3"
        | "__clone_internal"
        | "__clone_internal_fallback" => Some(Refusal::Special("returns on two stacks")),
        "getcontext" | "__getcontext" | "setcontext" | "__setcontext" | "swapcontext"
        | "__swapcontext" => Some(Refusal::Special("switches stacks")),
        _ if is_setjmp(name) => Some(Refusal::Special("returns twice")),
        _ if name.starts_with("_dl_runtime_") || name.starts_with("_dl_tlsdesc") => {
            Some(Refusal::Special(
                "the dynamic linker's trampoline, with a calling convention of its own",
            ))
        }
        _ if name.starts_with("__tls_get_addr") || name == "___tls_get_addr" => {
            Some(Refusal::Special("called where no register may change hands"))
        }
        _ if name.starts_with("__x86_indirect_thunk")
            || name.starts_with("__x86_return_thunk")
            || name.starts_with("__llvm_retpoline")
            || name.starts_with("__x86.get_pc_thunk") =>
        {
            Some(Refusal::Special("a thunk that plays with its return address"))
        }
        _ => None,
    }
}

fn is_setjmp(name: &str) -> bool {
    matches!(name.trim_start_matches('_'), "setjmp" | "sigsetjmp" | "savectx" | "libc_sigsetjmp")
}

/// Returns why the function with this name must keep its return address, if it must.
pub(super) fn keeps_return_address(name: &str) -> Option<&'static str> {
    let name = bare(name);
    let looks = [
        "dlopen",
        "dlsym",
        "dlvsym",
        "dlmopen",
        "dlinfo",
        "dladdr",
        "dladdr1",
        "dlclose",
        "backtrace",
        "backtrace_symbols",
        "makecontext",
        "longjmp",
        "siglongjmp",
        "uw_init_context_1",
        "uw_frame_state_for",
        "_gfortran_backtrace",
        "sigreturn",
        "fork",
        "pthread_exit",
        "thrd_exit",
        "gmon_start__",
        "monstartup",
        "mcleanup",
        "cxa_throw",
        "cxa_rethrow",
        "gxx_personality_v0",
        "rust_eh_personality",
        "rust_start_panic",
        "rust_panic",
        "GI_dlsym",
    ];
    let stripped = name.trim_start_matches('_').trim_start_matches("libc_");
    match names::guarded(name) {
        Some(GuardKind::Switch) => return Some("it switches stacks"),
        Some(GuardKind::Unwind | GuardKind::Backtrace) => return Some("it walks the stack"),
        Some(GuardKind::Load) | None => {}
    }
    if name.starts_with("_Unwind_") || name.starts_with("_ULx86_64_") || name.starts_with("unw_") {
        return Some("it walks the stack");
    }
    if name.starts_with("_dl_") || looks.contains(&stripped) {
        return Some("it looks at return addresses");
    }
    if returns_twice(name) {
        return Some("it returns twice");
    }
    None
}

/// Returns whether the function returns more than once. Then a function that ends in a jump to it
/// does, too.
fn returns_twice(name: &str) -> bool {
    is_setjmp(name) || matches!(name, "vfork" | "__vfork" | "getcontext" | "swapcontext")
}

/// Recognizes the names of parts that compilers split off: these are not entered by calls.
pub(super) fn is_part_name(name: &str) -> bool {
    let name = bare(name);
    name.ends_with(".cold")
        || name.contains(".cold.")
        || name.contains(".__part.")
        || name.ends_with(".eh_landing")
        || name.contains(".warm.")
}

/// Removes the symbol version.
pub(super) fn bare(name: &str) -> &str {
    name.split_once('@').map_or(name, |(bare, _)| bare)
}
