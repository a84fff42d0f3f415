//! Markers: what a program writes into its own buffers, made into the events everything else is
//! made of. The format is in `docs/marker-format.md`.
//!
//! `layout` reads bytes, `buffer` finds what is new in them and what is missing, `clock` turns the
//! writer's time into ours, `objects` and `sites` turn addresses into functions, and `Markers` puts the four
//! together. Nothing the target wrote is believed: what makes no sense is a counted diagnostic.

mod buffer;
mod clock;
mod layout;
mod lives;
mod losses;
mod objects;
mod reading;
mod sites;
mod streams;

pub use clock::{ClockResidual, ClockSample, Ticks};
pub use layout::{BUFFER_LEN, Header};
pub use objects::{MarkerObject, MarkerPlace, MarkerRuntime, ObjectId, Passed};
pub use reading::{BufferId, Reading};
pub use streams::Markers;
