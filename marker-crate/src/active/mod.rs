//! Markers that do something: x86-64 Linux.
//!
//! From the scope outwards: `site` is what a scope becomes in the program, `enter` the few
//! instructions that write an event, `slow` what they do not do themselves, `flush` and `thread`
//! how a buffer is taken, emptied and given back. `buffer` is the memory that ctrace reads.

mod buffer;
mod clock;
mod enter;
mod flush;
pub(crate) mod guard;
mod list;
mod marker_fn;
pub(crate) mod named;
mod runtime;
mod site;
mod slow;
mod sys;
mod texts;
mod thread;
mod usdt;

/// Keeps the compiler from moving memory accesses across: all that is needed between a thread and
/// its own signal handlers, and, as x86 does not reorder stores, for those who read from outside.
fn fence() {
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}

/// What the macros expand to.
pub(crate) mod private {
    pub use super::enter::ctrace_marker_enter as enter;
    pub use super::guard::{begun, nothing};
    pub use super::texts::{Texts, id, section};
}
