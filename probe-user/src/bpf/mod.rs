//! The only door to the kernel, and the only unsafe code of this crate besides `inherited`.
//!
//! [`Kernel`] loads the programs and attaches them. [`Rings`] bring the records back. [`Features`]
//! tell what this machine supports. Every system call goes through `sys`, where unit tests put a
//! fake. The [`guard`], a separate process, makes, keeps and closes links. `docs/wire-format.md`
//! describes what travels through the rings.
#![allow(unsafe_code, reason = "system calls and shared memory have no safe interface")]

mod answer_file;
mod error;
mod features;
mod guard;
mod kernel;
mod letting_go;
mod link;
mod load;
mod machine;
mod maps;
mod own_process;
mod processes;
mod restore;
mod return_guards;
mod rings;
mod single_step;
pub(crate) mod spun;
mod sys;

pub(crate) use answer_file::AnswerFile;
pub use error::BpfError;
pub(crate) use error::MORE_OPEN_FILES;
pub use features::Features;
pub(crate) use features::{Nop, Support, can_read_arguments, threads_can_wait};
pub(crate) use guard::{
    GuardDeath, Hold, Left, Owner, Sight, can_be_started, finish, hold, is_guard, leave, let_go,
    serve, wait_for_healing,
};
pub use kernel::{Config, Kernel};
pub use link::{
    Attachment, Role, Site,
    floor::attach_nothing,
    kind::{LinkChoice, LinkKind},
};
pub(crate) use link::{
    event_places::event_places,
    kernel_link::SITES_LIMIT,
    live_places::LivePlaces,
    touch::{ProbePlace, Touched, touch, touches_many},
};
pub(crate) use load::{diagnostics::Diagnostics, object::require};
pub use machine::clock::now;
pub(crate) use machine::{
    capabilities::{Capabilities, Capability, Needs},
    clock::{own_time, sample},
    cpus::online_cpus,
    release::Release,
};
pub(crate) use maps::counted::{CountedFacts, CountedSizes};
pub(crate) use maps::left_out::{Held, Thrift};
pub(crate) use maps::side_table::{CONDITIONS_LIMIT, JUMPS_LIMIT, VALUES_LIMIT};
pub use maps::values::{CallElements, CallSources, Unmet};
pub use own_process::abort::Memory;
pub(crate) use own_process::{
    abort::end_plainly,
    heap::{give_back, use_one_arena},
    undisturbed::stay_undisturbed,
};
pub(crate) use processes::{
    control::Traced,
    cpu_clock::CpuClock,
    memory::{Piece, read_pieces},
    starts::Starts,
};
pub(crate) use return_guards::lacking as return_guards_lacking;
pub(crate) use rings::news::News;
pub use rings::{
    Drained, Rings,
    loss::{Lost, LostCounter},
};
pub(crate) use single_step::single_step_cost;
