//! A session that a screen or a daemon watches: its reports go to a function, and it takes commands
//! meanwhile.

use ctrace_core::{
    report::{Extras, Report},
    units::Nanos,
};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// Takes a report; returns `false` to end the session.
pub(crate) type Deliver = Box<dyn FnMut(Snapshot) -> bool + Send>;

/// The receiver of the reports of intervals, and their contents.
pub(crate) struct Live {
    pub interval: Duration,
    /// Called for each report.
    pub extras: Box<dyn Fn() -> Extras + Send>,
    pub center_cut: f64,
    pub deliver: Deliver,
}

/// A report, and the cost of the probes in the same stretch of time.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub report: Report,
    /// The cost of each of the report's functions: an estimate by the average cost of its hits.
    pub spent: Vec<Nanos>,
    /// CPU time of the target since it began, if it can be known.
    pub cpu: Option<Nanos>,
}

impl Snapshot {
    /// Returns the cost of all probes together.
    pub(crate) fn cost(&self) -> Nanos {
        self.spent.iter().fold(Nanos::ZERO, |sum, cost| sum.saturating_add(*cost))
    }
}

/// A command to a session that runs.
pub(crate) enum Command {
    /// End as if the time were up.
    Stop,
    /// Make a report of the interval so far; the interval goes on.
    Peek(Box<dyn FnOnce(Snapshot) + Send>),
}

/// The commands to a session; it goes on when their senders are gone.
pub(crate) type Commands = UnboundedReceiver<Command>;
