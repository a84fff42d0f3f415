//! Recordings: every finished call of a trace in a file, to be looked at many ways later.
//!
//! A `.ctrace` file is a sequence of blocks, each of which can be read without those that come
//! after it, so that what was written before a crash is worth something. Calls are in *chunks*: the
//! calls of all threads that ended within a stretch of time, and those that were open at its end.
//! Unions of intervals add up over chunks, so chunks can be worked on in parallel. The layout, byte
//! by byte, is in docs/wire-format.md.
//!
//! The engine makes [`Block`]s, [`Writer`] frames them, [`Recording`] reads them.
//!
//! # Reading a recording
//!
//! [`Recording::open`] takes anything that is [`ReadAt`]: a file, or bytes in memory. It reads names
//! and call paths at once; calls are read a chunk at a time, so that a file of any size can be gone
//! through in little memory, by several threads if need be. What is told of a call is its thread, its
//! path, its start and its duration:
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
//! For numbers as `ctrace report` has them, filters included, see [`replay`](crate::recording::replay). Names are
//! the target's to choose: [`clean`](crate::report::render::clean::clean) makes them harmless for a terminal.
//! The example `read_recording` prints the slowest call of each function.
#![warn(missing_docs)]

mod block;
mod chunk;
#[cfg(test)]
mod damage_tests;
mod definitions;
mod error;
mod extent;
mod harvest;
#[cfg(test)]
mod hostile_tests;
mod index;
mod join;
mod names;
pub(crate) mod payloads;
mod reader;
pub mod replay;
mod reused;
mod room;
mod scan;
mod slow;
mod start;
mod varint;
mod writer;

pub use block::{Block, BlockKind, is_recording};
pub use chunk::{Call, Chunk, ChunkLoss, OpenCall, ThreadCalls};
pub use definitions::Definitions;
pub use error::RecordError;
pub(crate) use harvest::Harvest;
pub use index::ChunkEntry;
pub use join::{JoinError, Joined};
pub(crate) use names::Names;
pub use names::{End, Host, ObjectRecord, Start, ThreadRecord};
pub use payloads::{Payload, Payloads, Value};
pub use reader::{PathNode, ReadAt, Recording};
pub(crate) use reused::Calls;
pub use slow::Slow;
pub(crate) use slow::SlowWatch;
pub(crate) use varint::put as put_varint;
pub use writer::{Framed, Writer};

/// Calls in a chunk, at most a few more: small enough to stay in a processor's cache.
pub const CHUNK_CALLS: usize = 65_536;

/// Where paths begin.
pub const ROOT_PATH: u32 = crate::calls::paths::ROOT;
