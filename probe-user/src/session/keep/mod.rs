//! Passes a session's results to reports, to a watcher, or to recordings.

pub(crate) mod behind;
pub(crate) mod flight;
pub(crate) mod frame;
pub(crate) mod live;
pub(crate) mod output;
pub(crate) mod recording;
pub(crate) mod sink;
pub(crate) mod spill;
