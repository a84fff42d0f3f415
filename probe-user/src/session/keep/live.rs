//! A session that somebody goes on looking at, a screen or a daemon: its reports go to a function,
//! and it takes commands meanwhile.

use ctrace_core::{
    report::{Extras, Report},
    units::Nanos,
};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// Takes a report; `false` ends the session.
pub(crate) type Deliver = Box<dyn FnMut(Snapshot) -> bool + Send>;

/// Where the reports of intervals go, and what is in them.
pub(crate) struct Live {
    pub interval: Duration,
    /// Asked for each report.
    pub extras: Box<dyn Fn() -> Extras + Send>,
    pub center_cut: f64,
    pub deliver: Deliver,
}

/// A report, and what the probes cost the target in the same stretch of time.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub report: Report,
    /// Of each of the report's functions, by what its hits cost on average: an estimate.
    pub spent: Vec<Nanos>,
    /// Processor time of the target since it began, if it can be known.
    pub cpu: Option<Nanos>,
}

impl Snapshot {
    /// What all probes cost together.
    pub(crate) fn cost(&self) -> Nanos {
        self.spent.iter().fold(Nanos::ZERO, |sum, cost| sum.saturating_add(*cost))
    }
}

/// What can be asked of a session that runs.
pub(crate) enum Command {
    /// End as if the time were up.
    Stop,
    /// A report of the interval so far, which goes on.
    Peek(Box<dyn FnOnce(Snapshot) + Send>),
}

/// From those who command a session; it goes on when they are gone.
pub(crate) type Commands = UnboundedReceiver<Command>;
