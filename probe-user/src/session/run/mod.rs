//! Runs a session: sets it up, launches or finds its process, places probes and takes them away, and
//! moves what comes to where it is kept.

pub mod arm;
mod before;
pub mod event_loop;
pub mod groups;
pub mod launch;
mod release;
pub mod session;
pub mod setup;
pub mod signals;
pub mod status;
pub mod unarmed;
