//! The guard: a small process beside ctrace that makes, keeps and closes every uprobe link.
//!
//! While a thread makes or closes a link, a fatal signal makes the kernel leave breakpoints in the
//! target for good. ctrace can be killed at any moment; the guard is in a session of its own, ignores
//! what can be ignored, and closes all links in peace when ctrace is gone, however it went. ctrace
//! itself has no link, only a number for each.
//!
//! | file | what |
//! |---|---|
//! | `client` | ctrace's side: asks, and waits for the answers |
//! | `leaving` | the end of ctrace, which waits for the last link |
//! | `start` | how the process is started, and what it is without |
//! | `server` | the guard's side |
//! | `owner` | how ctrace is |
//! | `room` | how many links the guard can keep |
//! | `wire` | what they say to each other |
//! | `aftermath` | what is told when one of them has died |

mod aftermath;
mod client;
mod leaving;
mod owner;
mod room;
mod server;
mod start;
mod wire;

pub(crate) use aftermath::Left;
pub(super) use client::{Guard, GuardedLink, current};
pub(crate) use client::{GuardDeath, hold, let_go};
pub(crate) use leaving::{finish, leave};
pub(crate) use owner::{Owner, Sight};
pub(crate) use server::Hold;
pub(crate) use start::{can_be_started, serve};
