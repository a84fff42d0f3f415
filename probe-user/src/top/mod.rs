//! `ctrace top`: a screen that shows what a session finds out while it goes on.
//!
//! [`source`] runs the session on a thread of its own and delivers snapshots; [`model`] is what the
//! user sees of them, a value that changes with each snapshot and each key; [`view`] turns the model
//! into lines; [`run`] is the one loop. Nothing but the loop, the screen and the source does
//! anything: the rest are functions from values to values, tested without a terminal.

mod catalogue;
mod columns;
mod compare;
mod daemon;
mod data;
mod export;
mod figures;
mod held;
mod keys;
mod model;
mod narrow;
mod observer;
mod rows;
mod run;
mod screen;
mod source;
mod stretch;
mod sums;
#[cfg(test)]
mod tests;
mod trend;
mod view;

pub(crate) use run::{run, run_with_daemon};
pub(crate) use screen::check;
pub(crate) use source::Subject;
