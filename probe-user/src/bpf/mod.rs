//! The only door to the kernel, and the only unsafe code of this crate besides `inherited`.
//!
//! [`Kernel`] loads the programs and attaches them. [`Rings`] bring the records back. [`Features`]
//! tell what this machine supports. Every system call goes through `sys`, where unit tests put a
//! fake. The [`guard`], a separate process, makes, keeps and closes links. `docs/wire-format.md`
//! describes what travels through the rings.
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
mod keeper;
mod kernel;
mod kernel_link;
mod layout;
mod link;
mod live_places;
mod loader;
mod loss;
mod memory;
mod multi;
mod news;
mod object;
mod per_cpu;
mod perf;
mod pid_namespace;
mod programs;
mod release;
mod restore;
mod return_guards;
mod rings;
mod side_table;
mod starts;
mod sys;
mod timed_placement;
mod touch;
mod undisturbed;
mod values;

pub use abort::Memory;
pub(crate) use abort::end_plainly;
pub(crate) use capabilities::{Capabilities, Capability, Needs};
pub use clock::now;
pub(crate) use clock::{own_time, sample};
pub(crate) use control::Traced;
pub(crate) use cpu_clock::CpuClock;
pub(crate) use cpus::online_cpus;
pub(crate) use diagnostics::Diagnostics;
pub use error::BpfError;
pub use features::Features;
pub(crate) use features::{Nop, Support, can_read_arguments, threads_can_wait};
pub use floor::attach_nothing;
pub(crate) use guard::{
    GuardDeath, Hold, Left, Owner, Sight, can_be_started, finish, hold, is_guard, leave, let_go,
    serve, wait_for_healing,
};
pub(crate) use heap::{give_back, use_one_arena};
pub use kernel::{Config, Kernel};
pub(crate) use link::SITES_LIMIT;
pub use link::{Attachment, LinkChoice, LinkKind, Role, Site};
pub(crate) use live_places::LivePlaces;
pub use loss::{Lost, LostCounter};
pub(crate) use memory::{Piece, read_pieces};
pub(crate) use news::News;
pub(crate) use object::require;
pub(crate) use release::Release;
pub(crate) use return_guards::lacking as return_guards_lacking;
pub use rings::{Drained, Rings};
pub(crate) use side_table::{CONDITIONS_LIMIT, JUMPS_LIMIT, VALUES_LIMIT};
pub(crate) use starts::Starts;
pub(crate) use touch::{Place, Touched, touch, touches_many};
pub(crate) use undisturbed::stay_undisturbed;
pub use values::{CallElements, CallSources, Unmet};
