//! Passes a session's results to reports, to a watcher, to recordings, to a timeline, or to a reader
//! call by call.

pub(crate) mod answers;
pub(crate) mod behind;
pub(crate) mod counted_parts;
pub(crate) mod flight;
pub(crate) mod lines;
pub(crate) mod live;
pub(crate) mod live_calls;
pub(crate) mod messages;
pub(crate) mod newest;
pub(crate) mod one_function;
pub(crate) mod output;
pub(crate) mod parts;
pub(crate) mod recording;
pub(crate) mod replayed;
pub(crate) mod sink;
pub(crate) mod spill;
pub(crate) mod split;
pub(crate) mod stream;
