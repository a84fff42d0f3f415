//! Recordings: every finished call of a trace in a file, to be looked at many ways later.
//!
//! A `.ctrace` file is a sequence of blocks, each of which can be read without those that come
//! after it, so that what was written before a crash is worth something. Calls are in *chunks*: the
//! calls of all threads that ended within a stretch of time, and those that were open at its end.
//! Unions of intervals add up over chunks, so chunks can be worked on in parallel. The layout, byte
//! by byte, is in docs/wire-format.md.
//!
//! [`Recorder`] (in the engine) makes blocks, [`Writer`] frames them, [`Recording`] reads them.

mod block;
mod chunk;
mod definitions;
mod error;
mod index;
mod names;
mod recorder;
mod recording;
mod varint;
mod writer;

pub use block::{Block, BlockKind, is_recording};
pub use chunk::{Call, Chunk, ChunkLoss, OpenCall, ThreadCalls};
pub use definitions::Definitions;
pub use error::RecordError;
pub use index::ChunkEntry;
pub use names::{End, Host, ObjectRecord, Start, ThreadRecord};
pub(crate) use recorder::Recorder;
pub use recording::{PathNode, ReadAt, Recording};
pub(crate) use varint::put as put_varint;
pub use writer::{Copied, Writer};

/// Calls in a chunk, at most a few more: small enough to stay in a processor's cache.
pub const CHUNK_CALLS: usize = 65_536;

/// Where paths begin.
pub const ROOT_PATH: u32 = crate::paths::ROOT;
