//! Markers for programs that ctrace profiles: nearly free when untraced, cheap when traced.
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
//! [`scope!`] takes values, too. [`message!`], [`plot!`] and [`frame!`] write points in time.
//!
//! ```
//! use ctrace_marker::{frame, message, plot, scope};
//!
//! fn send(bytes: &[u8], waiting: usize) {
//!     let _scope = scope!("send", bytes = bytes.len());
//!     plot!("waiting", waiting);
//!     message!(level = Warn, group = "net", "{} bytes to go", bytes.len());
//!     frame!();
//! }
//! # send(b"ab", 1);
//! ```
//!
//! The feature `locks` adds `Mutex`, `RwLock` and `Condvar`, those of `std` with markers: ctrace shows who waits
//! for which lock, and who holds it meanwhile.
//!
//! # Cost
//!
//! - Dormant, a scope is `cmp word ptr [rip + …], 0` and a jump that is not taken, 14 bytes. The
//!   function saves and restores up to two more registers, and one is tested when the scope ends
//!   (in small functions the compiler removes that). There is no lock, no allocation, no
//!   thread-local storage, no atomic operation. In all it takes some tenths of a nanosecond.
//! - Active, entry and exit together cost about as much as two bare `rdtsc` (some 20 ns). The
//!   thread writes 16 bytes for a call, 32 for one that calls other scopes, into its own buffer. It
//!   enters the kernel once in 4032 bytes.
//! - A dormant point is the same comparison and jump, and nothing else. Active, it costs about
//!   as much as two bare `rdtsc`; a message costs its formatting besides. It takes 16 bytes of the
//!   buffer, and so do each value and each 15 bytes of a message. A plot needs no room for its value
//!   if that is an integer of less than 16 bits, also as a float.
//! - A thread gets one buffer of 4 KiB when it first uses an active scope. Other threads have none.
//!   Buffers of threads that ended are used again.
//! - At start, one thread-specific key is made. Nothing else runs unasked.
//!
//! `cargo run --release --example cost` measures all that on your machine.
//!
//! # Guarantees
//!
//! - Only the kernel switches scopes on and off, on behalf of a ctrace that is linked to them. When
//!   that ctrace ends, in whatever way, they are off.
//! - A scope may be used in a signal handler, whatever the handler interrupts, and so may a point.
//!   `errno` is kept.
//!   (Limits: if a handler fills the buffer just between the two instructions with which the
//!   interrupted scope takes a slot and writes to it, that event is lost and counted. If the
//!   process had 32 thread-specific keys before this library was loaded, the C library allocates
//!   memory for a thread's first event.)
//! - After `fork` the child starts with empty buffers: no event is delivered twice.
//! - A scope left by a panic is left like any other.
//! - Without memory, events are lost and the program goes on. Nothing here panics.
//! - ctrace gets the events when the buffer is full, when the thread ends and when the process
//!   calls `exit`. After any other end (a crash, `SIGKILL`) it reads the buffer from outside.
//!
//! # Limits
//!
//! - x86-64 Linux. On other targets, under Miri, and with `default-features = false` (without the
//!   feature `active`), the same code compiles to nothing at all.
//! - The C library is required, as with `std`, though the crate is `no_std`.
//! - A library with markers that is loaded with `dlopen` works with glibc; musl does not load
//!   libraries with such thread-local storage (initial exec) at run time.
//! - When a library with a copy of this crate is closed with `dlclose`, the thread that closes it
//!   delivers its events; the other threads' stay in their buffers, which are not freed.
//! - A scope left by `longjmp` or by the end of the thread has no exit event. ctrace sees from the
//!   stack pointer that it is over.
//! - A scope may end in another function than it began in, but not on another thread.
//! - When the linker drops a function with a `usdt!` in it, the probe's note stays, with the
//!   address 0.
//! - Texts of a scope are limited to 255 bytes of the name, 191 of the file (187 with a colour), 63 of the group. The
//!   end of a longer text is kept. With values, 127 bytes are for the name, and as many for their
//!   names and units.
//! - The arguments of values and of messages are computed only while the marker is on.
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
//! `docs/marker-format.md` describes the contents of the program and of the buffers.
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

#[cfg(feature = "locks")]
extern crate std;

mod async_scope;
mod group;
mod level;
#[cfg(feature = "locks")]
mod locks;
mod point;
mod probe_arg;
mod scope;
mod value;

pub use chosen::guard::Guard;
pub use chosen::named::{ctrace_enter, ctrace_exit};
pub use chosen::thread_name::thread_name;
#[cfg(any(feature = "macros", not(feature = "active")))]
pub use ctrace_marker_macros::mark;
pub use level::Level;
#[cfg(feature = "locks")]
pub use locks::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult,
};
pub use probe_arg::ProbeArg;
pub use value::{Number, Value};

/// The expansion of the macros. Not for people.
#[doc(hidden)]
pub mod __private {
    pub use crate::chosen::private::*;
    pub use crate::group::is_off;
    pub use crate::value::{number, values};
    pub use core;
}
