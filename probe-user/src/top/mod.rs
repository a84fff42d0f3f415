//! `ctrace top`: a screen that shows a session's results while it runs.
//!
//! [`source`] runs the session on its own thread and delivers snapshots. [`model`] is the state of
//! the screen, a value that changes with each snapshot and key. [`view`] turns the model into
//! lines. [`run`] is the only loop. Only the loop, the screen and the source have effects. The rest
//! are pure functions, tested without a terminal.

mod data;
mod export;
mod format;
mod held;
mod keys;
mod lines;
mod model;
mod run;
mod screen;
mod source;
mod summary;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use model::columns::TopColumn;
pub(crate) use run::{run, run_with_daemon};
pub(crate) use screen::check;
