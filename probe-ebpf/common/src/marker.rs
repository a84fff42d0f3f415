//! What the programs know of marker buffers; all of it is in `docs/marker-format.md`.

/// Where in a buffer the id of its thread is.
pub const BUFFER_TID: u64 = 16;
/// Where the number of events of its earlier batches is.
pub const BUFFER_EVENTS: u64 = 32;
/// Where in a buffer the position of its next free slot is.
pub const BUFFER_POSITION: u64 = 20;
/// Where the slots begin.
pub const FIRST_SLOT: u32 = 64;
pub const SLOT_BYTES: u32 = 16;
/// Buffers of one thread: one for each copy of a runtime it has run through, and nested ones.
pub const BUFFERS_PER_THREAD: u32 = 8;

/// Names a buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferKey {
    pub pid: u64,
    pub address: u64,
}
