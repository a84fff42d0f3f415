//! The guard of a scope: what the entry event said, so that the exit event says the same.

use super::enter::ctrace_marker_exit;
use core::{marker::PhantomData, mem::MaybeUninit};

/// A scope that has begun; it ends when this is dropped.
#[must_use = "the scope ends when the guard is dropped: bind it to a name, such as `_scope`"]
pub struct Guard {
    /// Word 1 of the entry event; 0: the scope was off when it began.
    tag: u64,
    /// The part of word 0 that is not time. Only there when `tag` is not 0: so a dormant scope has
    /// one value to carry to its end, not two.
    sp: MaybeUninit<u64>,
    /// A scope ends on the thread it began on.
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

/// The guard of a scope that was entered, or, with tag 0, was off.
///
/// # Safety
/// When `tag` is not 0, both are what `enter` returned on this thread.
#[inline(always)]
pub unsafe fn begun(tag: u64, sp: MaybeUninit<u64>) -> Guard {
    Guard { tag, sp, thread: PhantomData }
}

/// The guard of a scope that is compiled out.
#[inline(always)]
pub const fn nothing() -> Guard {
    Guard { tag: 0, sp: MaybeUninit::uninit(), thread: PhantomData }
}
