//! The events that reach the supervisor.

use super::{commands::ReadCommand, control::ControlRequest, ids::SessionId, signals::SignalOrder};
use crate::bpf::Traced;
use ctrace_core::units::Pid;

/// An event for the supervisor.
pub(crate) enum DaemonEvent {
    /// A process runs a new program, or is the child of one that is traced.
    Started(Pid),
    /// A process and its requested command line.
    Known(ReadCommand),
    /// Some reports of starts were lost.
    StartsLost,
    Session(SessionId, SessionProgress),
    Signal(SignalOrder),
    /// A request from the control socket.
    Request(ControlRequest),
}

/// The progress of a session.
pub(crate) enum SessionProgress {
    /// Its probes are in place.
    Armed {
        /// The processes that it traces.
        traced: Traced,
        /// True if it traces none of the functions whose slow calls are wanted.
        in_vain: bool,
    },
    Ended(Result<(), String>),
}
