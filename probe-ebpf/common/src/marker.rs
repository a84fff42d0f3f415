//! What the programs know of marker buffers; all of it is in `docs/marker-format.md`.

/// Where in a buffer the id of its thread is.
pub const BUFFER_TID: u64 = 16;
/// Where the number of events of its earlier batches is.
pub const BUFFER_EVENTS: u64 = 32;
/// Where in a buffer the position of its next free slot is.
pub const BUFFER_POSITION: u64 = 20;
/// Where the number of slots is that hold a whole call.
pub const BUFFER_WHOLE: u64 = 42;
/// Where the slots begin.
pub const FIRST_SLOT: u32 = 64;
pub const SLOT_BYTES: u32 = 16;
/// Buffers of one thread: one for each copy of a runtime it has run through, and nested ones.
pub const BUFFERS_PER_THREAD: u32 = 8;

/// A buffer that a thread has registered, and the thread's id in its own pid namespace, which the
/// buffer says as well while it is the thread's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadBuffer {
    pub address: u64,
    pub tid: u64,
}

/// Names a buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferKey {
    pub pid: u64,
    pub address: u64,
}
