//! The only door to the kernel, and but for `inherited` the only unsafe code of this crate.
//!
//! [`Kernel`] loads the programs and attaches them; [`Rings`] bring the records back; [`Features`]
//! say what this machine can do. Every system call of ours goes through `sys`, where unit tests
//! put a fake. Links are made, kept and closed by the [`guard`], a process of its own. See
//! `docs/wire-format.md` for what travels through the rings.
#![allow(unsafe_code, reason = "system calls and shared memory have no safe interface")]

mod abort;
mod bisection;
mod btf;
mod buffers;
mod capabilities;
mod clock;
mod control;
mod cpu_clock;
mod cpus;
mod diagnostics;
mod error;
mod features;
mod floor;
mod guard;
mod heap;
mod heartbeat;
mod jumps;
mod keeper;
mod kernel;
mod kernel_link;
mod layout;
mod link;
mod loader;
mod loss;
mod memory;
mod multi;
mod news;
mod object;
mod perf;
mod pid_namespace;
mod programs;
mod release;
mod rings;
mod starts;
mod sys;
mod timed_placement;
mod touch;
mod undisturbed;

pub use abort::Memory;
pub(crate) use abort::end_plainly;
pub(crate) use capabilities::{Capabilities, Capability, Needs, Use};
pub use clock::now;
pub(crate) use clock::{own_time, sample};
pub(crate) use control::Traced;
pub(crate) use cpu_clock::CpuClock;
pub(crate) use diagnostics::Diagnostics;
pub use error::BpfError;
pub use features::Features;
pub(crate) use features::{Nop, Support};
pub use floor::attach_nothing;
pub(crate) use guard::{
    GuardDeath, Hold, Left, Owner, Sight, can_be_started, finish, hold, leave, let_go, serve,
};
pub(crate) use heap::{give_back, use_one_arena};
pub(crate) use jumps::JUMPS_LIMIT;
pub use kernel::{Config, Kernel};
pub use link::{Attachment, LinkChoice, LinkKind, Role, Site};
pub(crate) use link::{PERF_SITES_LIMIT, SITES_LIMIT};
pub use loss::{Lost, LostCounter};
pub(crate) use memory::{Piece, read_pieces};
pub(crate) use news::News;
pub(crate) use object::{require, toolchain};
pub(crate) use release::Release;
pub use rings::{Drained, Rings};
pub(crate) use starts::Starts;
pub(crate) use touch::{Place, Touched, touch, touches_many};
pub(crate) use undisturbed::stay_undisturbed;
