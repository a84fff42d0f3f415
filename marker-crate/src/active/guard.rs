//! The guard of a scope, which carries data from the entry event to the exit event.

use super::enter::ctrace_marker_exit;
use core::{marker::PhantomData, mem::MaybeUninit};

/// A begun scope. It ends when this is dropped.
#[must_use = "the scope ends when the guard is dropped: bind it to a name, such as `_scope`"]
pub struct Guard {
    /// Word 1 of the entry event; 0 means that the scope was off when it began.
    tag: u64,
    /// The part of word 0 that is not time. It is set only if `tag` is not 0, so a dormant scope
    /// carries one value to its end, not two.
    sp: MaybeUninit<u64>,
    /// A scope must end on the thread where it began.
    thread: PhantomData<*const ()>,
}

impl Guard {
    /// Ends the scope before the guard's own end.
    #[inline(always)]
    pub fn end(self) {}
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.tag != 0 {
            // SAFETY: `begun` asks that `sp` is there when `tag` is not 0. The function called
            // changes the registers of the win64 convention that may be changed and no others; the
            // stack is aligned, as there is no `nostack`.
            unsafe {
                core::arch::asm!(
                    "call {exit}",
                    exit = sym ctrace_marker_exit,
                    in("r10") self.tag,
                    in("r11") self.sp.assume_init(),
                    clobber_abi("win64"),
                );
            }
        }
    }
}

/// Makes the guard of a scope that was entered or, with tag 0, was off.
///
/// # Safety
/// If `tag` is not 0, both must be what `enter` returned on this thread.
#[inline(always)]
pub unsafe fn begun(tag: u64, sp: MaybeUninit<u64>) -> Guard {
    Guard { tag, sp, thread: PhantomData }
}

/// Makes the guard of a scope that is compiled out.
#[inline(always)]
pub const fn nothing() -> Guard {
    Guard { tag: 0, sp: MaybeUninit::uninit(), thread: PhantomData }
}
