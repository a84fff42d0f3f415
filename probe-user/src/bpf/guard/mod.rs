//! The guard: a small process beside ctrace that makes, keeps and closes every uprobe link.
//!
//! A fatal signal to a thread that makes or closes a link makes the kernel leave breakpoints in the
//! target for good. ctrace can be killed at any moment. The guard has a session of its own, ignores
//! the signals that it can, and closes all links when ctrace is gone for whatever reason. ctrace
//! itself has only a number for each link.
//!
//! | file | what |
//! |---|---|
//! | `client` | ctrace's side: asks, and waits for the answers |
//! | `leaving` | the end of ctrace, which waits for the last link |
//! | `start` | the start of the process, and the resources that it gives up |
//! | `server` | the guard's side |
//! | `owner` | the state of ctrace |
//! | `room` | the number of links that the guard can keep |
//! | `header` | the fixed part of a message to the guard |
//! | `wire` | the messages between them |
//! | `aftermath` | the places left when one of them has died |

mod aftermath;
mod client;
mod header;
mod leaving;
mod owner;
mod room;
mod server;
mod start;
mod wire;

pub(crate) use aftermath::Left;
pub(super) use client::{Guard, GuardedLink, GuardedReturns, current};
pub(crate) use client::{GuardDeath, hold, is_guard, let_go};
pub(crate) use leaving::{finish, leave, wait_for_healing};
pub(crate) use owner::{Owner, Sight};
pub(crate) use server::Hold;
pub(crate) use start::{can_be_started, serve};
