//! A guard without effect: no size, and no code at its end.

use core::marker::PhantomData;

/// A begun scope. It ends when this is dropped.
#[must_use = "the scope ends when the guard is dropped: bind it to a name, such as `_scope`"]
pub struct Guard {
    /// As with markers, a scope must end on the thread where it began.
    thread: PhantomData<*const ()>,
}

impl Guard {
    /// Ends the scope before the guard's own end.
    #[inline(always)]
    pub fn end(self) {}
}

/// Makes the guard of a scope that is compiled out.
#[inline(always)]
pub const fn nothing() -> Guard {
    Guard { thread: PhantomData }
}
