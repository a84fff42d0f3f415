//! Takes what a session finds out: into reports, to somebody who looks on, or into recordings.

pub(crate) mod behind;
pub(crate) mod flight;
pub(crate) mod live;
pub(crate) mod output;
pub(crate) mod recording;
pub(crate) mod sink;
pub(crate) mod spill;
