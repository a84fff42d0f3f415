//! `ctrace daemon`: traces chosen processes for as long as they live, for as long as the machine
//! runs.
//!
//! [`supervisor`] is the one thread that decides ([`choosing`]: which processes to trace), and waits for no
//! process ([`commands`]); everything
//! reaches it as an [`Event`]. [`finder`] says which processes there are. Each traced process has a session on threads of its own
//! ([`session`]), which is what `ctrace attach` does; what the sessions see goes through the
//! [`hub`], and from there to reports and to whoever asks ([`control`]).

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

/// What happens, to the supervisor.
pub(crate) enum Event {
    /// A process runs a new program, or is the child of one that is traced.
    Started(Pid),
    /// A process and its command line, which somebody wanted to know.
    Known(commands::Answer),
    /// Some starts found no room on their way.
    StartsLost,
    Session(SessionId, Progress),
    Signal(signals::Order),
    /// From the control socket.
    Request(control::Request),
}

/// Of all sessions of this daemon, in the order of their starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionId(pub u64);

/// How far a session is.
pub(crate) enum Progress {
    /// Its probes are in place.
    Armed {
        /// The processes that it traces.
        traced: Traced,
        /// None of its functions is one whose slow calls are wanted.
        in_vain: bool,
    },
    Ended(Result<(), String>),
}
