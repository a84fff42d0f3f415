//! Takes what a session finds out: into reports, to somebody who looks on, or into recordings.

pub mod behind;
pub mod flight;
pub mod live;
pub mod output;
pub mod recording;
pub mod sink;
pub mod spill;
