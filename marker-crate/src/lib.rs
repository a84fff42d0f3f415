//! Markers for programs that ctrace profiles: free while nobody looks, cheap while somebody does.
//!
//! ```
//! use ctrace_marker::{mark, scope};
//!
//! #[mark]
//! fn checkout(items: u64) -> u64 {
//!     let total = {
//!         let _scope = scope!("add up", group = "shop");
//!         items * 2
//!     };
//!     let packing = scope!("pack");
//!     packing.end();
//!     total
//! }
//! assert_eq!(checkout(2), 4);
//! ```
//!
//! # Cost
//!
//! - Dormant, a scope is `cmp word ptr [rip + …], 0` and a jump that is not taken, 14 bytes; the
//!   function saves and restores up to two registers more, and one is tested when the scope ends
//!   (in small functions the compiler gets rid of that). No lock, no allocation, no thread-local
//!   storage, no atomic operation. All in all some tenths of a nanosecond.
//! - Active, entry and exit together cost about as much as two bare `rdtsc` (some 20 ns): the thread
//!   writes 16 bytes for a call, 32 for one that calls other scopes, into a buffer of its own, and
//!   enters the kernel once in 4032 bytes.
//! - A thread that uses a scope that is on gets one buffer of 4 KiB at that moment; threads that do
//!   not have none. Buffers of threads that ended are used again.
//! - At start, one thread-specific key is made. Nothing else runs unasked.
//!
//! `cargo run --release --example cost` measures all that on your machine.
//!
//! # Guarantees
//!
//! - Only the kernel switches scopes on and off, on behalf of a ctrace that is linked to them; when
//!   that ctrace ends, in whatever way, they are off.
//! - A scope may be used in a signal handler, whatever the handler interrupts, and `errno` stays as
//!   it is. (Limits: a handler that fills the buffer just between the two instructions with which
//!   the interrupted scope takes a slot and writes to it costs that event; it is counted. And where
//!   the process had 32 thread-specific keys before this library was loaded, the C library allocates
//!   memory for the first event of a thread.)
//! - After `fork` the child starts with empty buffers: no event is delivered twice.
//! - A scope left by a panic is left like any other.
//! - When no memory is to be had, events are lost and the program goes on. Nothing here panics.
//! - Events end up with ctrace when the buffer is full, when the thread ends and when the process
//!   calls `exit`; for everything else (a crash, `SIGKILL`) ctrace reads the buffer from outside.
//!
//! # Limits
//!
//! - x86-64 Linux. On other targets, under Miri, and with `default-features = false` (without the
//!   feature `active`), the same code compiles to nothing at all.
//! - The C library must be there, as with `std`, though the crate is `no_std`.
//! - A library with markers that is loaded with `dlopen` works with glibc; musl does not load
//!   libraries with such thread-local storage (initial exec) at run time.
//! - When a library with a copy of this crate is closed with `dlclose`, the thread that closes it
//!   delivers its events; the other threads' stay in their buffers, which are not freed.
//! - A scope left by `longjmp` or by the end of the thread has no exit event; ctrace sees from the
//!   stack pointer that it is over.
//! - A scope may be ended in another function than it was begun in, but not on another thread.
//! - When the linker drops a function with a `usdt!` in it, the probe's note stays, with 0 for a
//!   place.
//! - Texts of a scope are kept up to a length: 255 bytes of the name, 191 of the file, 63 of the
//!   group. Of a longer one the end is kept.
//!
//! # Groups
//!
//! A group is switched from outside (`ctrace attach -m 'prod/*'`). Groups named in the environment
//! variable `CTRACE_MARKER_OFF` when the *program* is compiled, separated by commas, compile to
//! nothing: `CTRACE_MARKER_OFF=dev,test cargo build --release`. The name `*` means every scope.
//!
//! # For other tools
//!
//! [`usdt!`] emits a USDT probe, [`marker_fn!`] a function that begins with instructions on which a
//! uprobe is cheap, and `ctrace_enter` and `ctrace_exit` are functions with USDT probes
//! (`ctrace:enter`, `ctrace:exit`) for perf, bpftrace, gdb and other languages.
//!
//! What is in the program and in the buffers is described in `docs/marker-format.md`.
#![no_std]
// Inline assembly, thread-local storage by hand, and memory that the kernel reads.
#![allow(unsafe_code, reason = "the one crate of ctrace that runs inside other people's programs")]
#![allow(
    named_asm_labels,
    reason = "they have the name of their naked function, and are not inlined"
)]

#[cfg(all(
    feature = "active",
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64",
    not(miri)
))]
mod active;
#[cfg(all(
    feature = "active",
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64",
    not(miri)
))]
use active as chosen;

#[cfg(not(all(
    feature = "active",
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64",
    not(miri)
)))]
mod inactive;
#[cfg(not(all(
    feature = "active",
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64",
    not(miri)
)))]
use inactive as chosen;

mod group;
mod probe_arg;
mod scope;

pub use chosen::guard::Guard;
pub use chosen::named::{ctrace_enter, ctrace_exit};
#[cfg(any(feature = "macros", not(feature = "active")))]
pub use ctrace_marker_macros::mark;
pub use probe_arg::ProbeArg;

/// What the macros expand to. Not for people.
#[doc(hidden)]
pub mod __private {
    pub use crate::chosen::private::*;
    pub use crate::group::is_off;
    pub use core;
}
