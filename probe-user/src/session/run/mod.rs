//! Runs a session: sets it up, launches or finds its process, places and removes probes, and moves
//! the results to where they are kept.

pub(crate) mod admission;
pub(crate) mod arm;
mod before;
pub(crate) mod chosen;
mod counting;
pub(crate) mod event_loop;
pub(crate) mod every_lock;
pub(crate) mod groups;
pub(crate) mod later;
pub(crate) mod launch;
mod release;
pub(crate) mod session;
pub(crate) mod setup;
pub(crate) mod signals;
pub(crate) mod status;
pub(crate) mod subject;
mod thrift;
pub(crate) mod unarmed;
mod wrapper;
