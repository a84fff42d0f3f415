//! Maps through which user space tells the programs what to do, and their counters.

pub(super) mod buffers;
pub(super) mod counted;
pub(super) mod heartbeat;
pub(super) mod left_out;
pub(super) mod per_cpu;
pub(super) mod side_table;
pub(super) mod values;
mod words;
