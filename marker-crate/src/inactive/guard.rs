//! A guard that guards nothing: no size, no code at its end.

use core::marker::PhantomData;

/// A scope that has begun; it ends when this is dropped.
#[must_use = "the scope ends when the guard is dropped: bind it to a name, such as `_scope`"]
pub struct Guard {
    /// As in a build with markers: a scope ends on the thread it began on.
    thread: PhantomData<*const ()>,
}

impl Guard {
    /// Ends the scope before the guard's own end.
    #[inline(always)]
    pub fn end(self) {}
}

/// The guard of a scope that is compiled out.
#[inline(always)]
pub const fn nothing() -> Guard {
    Guard { thread: PhantomData }
}
