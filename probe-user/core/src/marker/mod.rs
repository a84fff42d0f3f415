//! Converts a program's marker buffers into the events of the engine. `docs/marker-format.md`
//! specifies the format.
//!
//! `layout` reads bytes, `buffer` finds new and missing events, `clock` converts the writer's time,
//! `objects` and `sites` turn addresses into functions, `names` those that are named at run time, `pieces` reads names and values before entries, and
//! `Markers` combines them. The target's data are not trusted: malformed data are counted and
//! reported.

mod buffer;
mod clock;
mod layout;
mod lives;
mod losses;
mod names;
mod objects;
mod pieces;
mod reading;
mod sites;
mod streams;

pub use clock::{ClockResidual, ClockSample, Ticks};
pub use layout::{BUFFER_LEN, Header};
pub use names::{EventsOnly, MarkerSink};
pub use objects::{MarkerObject, MarkerPlace, MarkerRuntime, ObjectId, Passed, Request};
pub use pieces::{Carried, EntryValues};
pub use reading::{BufferId, Reading};
pub use streams::Markers;
