//! The wire format between the eBPF programs and user space.
//!
//! It has only integers, explicit padding and little-endian order. `docs/wire-format.md` describes
//! it byte by byte. Both sides compile this crate, so a change here changes both; [`WIRE_VERSION`]
//! changes with it.
#![no_std]

mod admission;
mod aggregate;
mod async_call;
mod change;
mod condition;
mod cookie;
mod counted_value;
mod goroutine;
mod jump;
mod loss;
mod marker;
mod news;
mod operand;
mod payload;
mod python;
mod record;
mod restore;
mod ring;
mod thrift;
mod traced;
mod wait;
mod words;

pub use admission::{Admission, BY_CGROUP, BY_PROGRAM, BY_USER, MOST_ADMISSIONS};
pub use aggregate::{
    BUCKET_BITS, BUCKETS, CountedFunction, Counting, ENDS_ARE_SEEN, ENDS_BY_RETURN,
    ENTRY_IS_LOOP_HEAD, FAR_AWAY, FIRST_BUCKETS, FULL_PATH, LONGEST, MOST_COUNTED_THREADS,
    MOST_OPEN, NO_PATH, OWN_NS, OpenCall, OpenCalls, PATHS_FULL, PathCounts, SHORTEST,
    SQUARES_HIGH, SQUARES_LOW, TAIL_CALLS_NEST, THREADS_FULL, TIMED, TIMED_NS, TOO_DEEP, UNCOUNTED,
    UNTIMED, UNTIMED_NS, bucket_of,
};
pub use async_call::{AsyncCall, AsyncStep};
pub use change::{Change, Comm};
pub use condition::{
    COMPARED_TEXT, Comparison, Condition, EQUAL, FLOAT, GREATER, LESS, MAX_COMPARISONS, MET_SLOTS,
    NUMBER, SIGN, TEXT, UNMET_COUNTERS, float_order,
};
pub use cookie::{Cookie, GoidPlace, NO_CONDITION, NO_INDEX};
pub use counted_value::{
    CountedValue, MOST_COUNTED_VALUES, NO_VALUE, OTHER_VALUES, UNREAD_VALUE, VALUE_SHIFT,
};
pub use goroutine::{Goroutine, goroutine_id, is_goroutine};
pub use jump::JumpTarget;
pub use loss::{
    LOSS_COUNTERS, LOST_EVENTS, LOST_MARKS, LOST_PAYLOADS, LOST_UNATTRIBUTED, WAITED_NANOS,
};
pub use marker::{
    BUFFER_LEN, BUFFER_MAGIC, BUFFER_SLOTS, BUFFERS_PER_THREAD, BufferHeader, BufferKey,
    CLOCK_MONOTONIC, CLOCK_TSC, HEADER_LEN, MARK_LEN, Mark, PASSED_SITE, PASSED_SITE_LEN,
    SiteEntry, ThreadBuffer,
};
pub use news::{NEW_PROGRAM, RING_FILLS};
pub use operand::{NO_REGISTER, Operand};
pub use payload::{
    MAX_TEXT, MAX_TEXTS, MAX_VALUES, PAYLOAD_SLOTS, RESULT, SINGLES, SLOT_VALUES, TEXT_SLOTS,
    TEXTS, UNREAD, ValueForm, ValueSources, payload_slots,
};
pub use python::{MOST_PYTHON_THREADS, NO_OFFSET, PythonOffsets, PythonPlaces, PythonValues};
pub use record::{CONTROL_LEN, Kind, RECORD_LEN, Record};
pub use restore::{
    GUARDED, GUARDED_STOPPED, GUARDS_BACKTRACES, Hijacked, MOST_HIJACKED, RESTORE_BACKTRACES,
    RESTORE_CONTINUES, RESTORE_CONTINUES_LOCKED_NANOS, RESTORE_CONTINUES_NANOS, RESTORE_COUNTERS,
    RESTORE_DONE, RESTORE_ENDING, RESTORE_ENDS, RESTORE_FREE, RESTORE_LOAD_NANOS, RESTORE_NANOS,
    RESTORE_OVER, RESTORE_PHASES, RESTORE_UNHEARD, RESTORE_WAITING, RESTORE_WORDS, RestoreReason,
    RestoreRequest,
};
pub use ring::{
    BATCH_SLOTS, COMMIT_WORD, CONTROL_SLOTS, COUNT_SHIFT, PAGE_LEN, PAGE_SLOTS, Page, READER_WORD,
    SLOT_LEN, Slot, WRITER_WORD, committed_kind, slots_of, slots_to_multiple,
};
pub use thrift::{KeptCall, KeptCalls, LeftOutCalls, MOST_KEPT, MOST_KEPT_THREADS};
pub use traced::{HEARTBEAT_NANOS, TRACED, TRACED_HELD, TRACED_LAUNCHED};
pub use wait::{Cause, NO_SYSCALL, WaitState, WokenFrom};

/// Version of everything in this crate.
pub const WIRE_VERSION: u32 = 15;

/// The usual bound on the size of a stack. Two places further apart than this are on different
/// stacks, if no stack is known.
pub const STACK_SIZE: u64 = 8 << 20;

/// CPUs with an entry of their own in the table of rings; a power of two. Further CPUs share
/// entries.
pub const MAX_CPUS: usize = 1024;
