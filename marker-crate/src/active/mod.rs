//! The working markers, for x86-64 Linux.
//!
//! From the scope outwards: `site` is a scope's code, `enter` the few instructions that write an
//! event, `slow` the rare cases. `point` is the code of points and of scopes with values, `source`
//! their values, `text` and `format` make the text of a message, `record` writes them, `sample` a value alone. `async_fn` tells of polls. `flush` and `thread` take, empty and give back buffers.
//! `buffer` is the memory that ctrace reads.

mod async_fn;
mod buffer;
mod clock;
mod enter;
mod flush;
mod format;
pub(crate) mod guard;
mod list;
mod marker_fn;
pub(crate) mod named;
mod point;
mod record;
mod runtime;
mod sample;
mod site;
mod slow;
mod source;
mod sys;
mod text;
mod texts;
mod thread;
pub(crate) mod thread_name;
mod usdt;

/// Stops the compiler from moving memory accesses across. A thread and its signal handlers need no
/// more and, as x86 does not reorder stores, neither do readers from outside.
fn fence() {
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}

/// The expansion of the macros.
pub(crate) mod private {
    pub use super::async_fn::{AsyncSite, Step, async_call};
    pub use super::enter::ctrace_marker_enter as enter;
    pub use super::format::{ByFmt, Directly, Never, Shown, around};
    pub use super::guard::{begun, nothing};
    pub use super::record::{low, tag};
    pub use super::source::{Lazy, Named, Nothing, Sample, Source, formatted};
    pub use super::texts::{Texts, head, id, plain, section};
    pub use super::thread_name::thread_name_of;
}
