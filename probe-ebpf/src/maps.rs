//! Every map of the programs. User space finds them by name.

use crate::atomic::Counter;
use aya_ebpf::{
    btf_maps::{Array, ArrayOfMaps, HashMap, PerCpuArray, RingBuf},
    macros::btf_map,
};
use ctrace_common::{JumpTarget, LOSS_COUNTERS, MAX_CPUS, Record};

/// One ring per CPU. User space sizes the outer map, creates the rings and stores them here; the
/// sizes below are only the verifier's template.
#[btf_map]
pub static RINGS: ArrayOfMaps<RingBuf<Record, 4096>, { MAX_CPUS as usize }> = ArrayOfMaps::new();

/// What was lost on each CPU, see `ctrace_common::LOST_EVENTS` and its neighbours.
#[btf_map]
pub static LOST: PerCpuArray<u64, { LOSS_COUNTERS as usize }> = PerCpuArray::new();

/// Thread id → events lost since its last delivered record.
#[btf_map]
pub static MISSED: HashMap<u32, u32, 16384> = HashMap::new();

/// How many threads have an entry in `MISSED`: while it is 0, nobody looks there.
pub static PENDING: Counter = Counter::new();

/// Process ids whose events count.
#[btf_map]
pub static TRACED: HashMap<u32, u8, 32768> = HashMap::new();

/// Indirect jumps, by the index in the cookie.
#[btf_map]
pub static JUMPS: Array<JumpTarget, 16384> = Array::new();
