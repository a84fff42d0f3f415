//! Recordings: files with every finished call of a trace, for any later report.
//!
//! A `.ctrace` file is a sequence of blocks. A block never needs later ones, so what was written
//! before a crash stays readable. Calls are in *chunks*: the calls of all threads that ended within
//! a time window, and those open at its end. Unions of intervals add up over chunks, so chunks can
//! be processed in parallel. docs/wire-format.md has the layout, byte by byte.
//!
//! The engine makes [`Block`]s, [`Writer`] frames them, [`Recording`] reads them.
//!
//! # Reading a recording
//!
//! [`Recording::open`] takes anything that is [`ReadAt`]: a file, or bytes in memory. It reads
//! names and call paths at once. Calls are read chunk by chunk, so a file of any size needs little
//! memory, and several threads can share the work. A call has a thread, a path, a start and a
//! duration:
//!
//! ```no_run
//! use ctrace_core::recording::Recording;
//!
//! let recording = Recording::open(std::fs::File::open("trace.ctrace")?)?;
//! for entry in recording.chunks() {
//!     let chunk = recording.chunk(entry)?;
//!     for thread in chunk.threads() {
//!         let name = recording.thread(thread.thread).map(|thread| &*thread.name);
//!         for call in chunk.calls(thread).iter().filter(|call| call.is_timed()) {
//!             let Some(path) = recording.path(call.path()) else { continue };
//!             let function = &recording.functions()[path.function.index()];
//!             println!("{name:?}: {} took {} ns", function.name, call.duration().0);
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`replay`](crate::recording::replay) computes the numbers of `ctrace report`, filters included.
//! The target chooses its names: [`clean`](crate::report::render::clean::clean) makes them harmless
//! for a terminal. The example `read_recording` prints the slowest call of each function.
#![warn(missing_docs)]

mod addresses;
mod block;
mod chunk;
#[cfg(test)]
mod damage_tests;
mod definitions;
mod error;
mod extent;
mod growing;
mod harvest;
#[cfg(test)]
mod hostile_tests;
mod index;
mod join;
mod missing;
mod names;
pub(crate) mod payloads;
mod plot_sums;
mod reader;
pub mod replay;
mod reused;
mod room;
mod scan;
mod slow;
mod source;
mod start;
mod value_sums;
pub(crate) mod varint;
mod writer;

pub(crate) use addresses::AddressNames;
pub use addresses::AddressRecord;
pub use block::{Block, BlockKind, is_recording};
pub use chunk::{Call, Chunk, ChunkLoss, OpenCall, ThreadCalls};
pub use definitions::Definitions;
pub use error::RecordError;
pub(crate) use harvest::Harvest;
pub use index::ChunkEntry;
pub use join::JoinError;
pub(crate) use names::{CostRecord, Names};
pub use names::{End, Host, ObjectRecord, Start, ThreadRecord};
pub(crate) use payloads::ValuesByCall;
pub use payloads::{Payload, Payloads};
pub use plot_sums::{PlotSum, PlotSums, later, wider};
pub use reader::{PathNode, Recording};
pub(crate) use reused::ChunkCalls;
pub use slow::Slow;
pub(crate) use slow::SlowWatch;
pub use source::ReadAt;
pub use value_sums::{CallValue, ValueSum, ValueSums};
pub(crate) use varint::put as put_varint;
pub use writer::{Framed, Writer};

/// Calls in a chunk, or a few more: they must fit a CPU's cache.
pub const CHUNK_CALLS: usize = 65_536;

/// The root of the tree of call paths.
pub const ROOT_PATH: u32 = crate::calls::paths::ROOT;
