//! `ctrace daemon`: traces chosen processes for as long as they live and the machine runs.
//!
//! [`supervisor`] is the one thread that decides. [`choosing`] picks the processes to trace, and
//! [`commands`] keeps it from waiting for any. Everything reaches it as an [`Event`]. [`finder`]
//! reports processes. Each traced process has a [`session`] on its own threads, which works like
//! `ctrace attach`. The sessions' reports go through the [`hub`] to files and to clients
//! ([`control`]).

pub(crate) mod accounts;
pub(crate) mod backoff;
pub(crate) mod choosing;
mod commands;
pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod finder;
pub(crate) mod flight;
pub(crate) mod hub;
pub(crate) mod limits;
pub(crate) mod looks;
pub(crate) mod matching;
pub(crate) mod metrics;
pub(crate) mod notify;
pub(crate) mod once;
mod places;
pub(crate) mod recordings;
pub(crate) mod reports;
pub(crate) mod requests;
pub(crate) mod session;
pub(crate) mod signals;
pub(crate) mod spans;
pub(crate) mod supervisor;
pub(crate) mod totals;
mod turns;
mod waiting;

pub(crate) use supervisor::run;

use crate::bpf::Traced;
use ctrace_core::units::Pid;
use std::{fmt, sync::Arc};

/// An event for the supervisor.
pub(crate) enum Event {
    /// A process runs a new program, or is the child of one that is traced.
    Started(Pid),
    /// A process and its requested command line.
    Known(commands::Answer),
    /// Some reports of starts were lost.
    StartsLost,
    Session(SessionId, Progress),
    Signal(signals::Order),
    /// A request from the control socket.
    Request(control::Request),
}

/// The number of a session in this daemon, in the order of starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionId(pub u64);

/// The name of a target in reports and commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TargetName(pub Arc<str>);

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The progress of a session.
pub(crate) enum Progress {
    /// Its probes are in place.
    Armed {
        /// The processes that it traces.
        traced: Traced,
        /// True if it traces none of the functions whose slow calls are wanted.
        in_vain: bool,
    },
    Ended(Result<(), String>),
}
