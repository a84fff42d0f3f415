//! Every map of the programs. User space finds them by name.

use crate::atomic::Counter;
use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    btf_maps::{Array, HashMap, PerCpuArray, RingBuf},
    macros::btf_map,
};
use ctrace_common::{
    Admission, BufferKey, Condition, CountedFunction, CountedValue, Counting, JumpTarget,
    KeptCalls, LOSS_COUNTERS, LeftOutCalls, OpenCalls, Page, PathCounts, PythonPlaces,
    RESTORE_COUNTERS, RESTORE_WORDS, RestoreRequest, ThreadBuffer, UNCOUNTED, ValueSources,
};

/// The rings, one per CPU, see `ctrace_common::Page` and its neighbours. User space sizes the map.
#[btf_map]
pub static RINGS: Array<Page, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// Numbers that wake user space, see `news`. User space sizes it.
#[btf_map]
pub static NEWS: RingBuf<u32, 65536> = RingBuf::new();

/// The losses on each CPU, see `ctrace_common::LOST_EVENTS` and its neighbours.
#[btf_map]
pub static LOST: PerCpuArray<u64, { LOSS_COUNTERS as usize }> = PerCpuArray::new();

/// Thread id → events lost since its last delivered record.
#[btf_map]
pub static MISSED: HashMap<u32, u32, 16384> = HashMap::new();

/// The number of threads with an entry in `MISSED`. While it is 0, nobody looks there.
pub static PENDING: Counter = Counter::new();

/// The number of goroutines among them.
pub static PENDING_GOROUTINES: Counter = Counter::new();

/// The number of programs that traced processes have executed. While it is 0, a launched process is
/// not the command yet.
pub static EXECUTED: Counter = Counter::new();

/// Not 0 once a thread has changed stacks within probed calls. No call gets a return probe then.
pub static SWITCHES: Counter = Counter::new();

/// Process ids whose events count.
#[btf_map]
pub static TRACED: HashMap<u32, u8, 32768> = HashMap::new();

/// Processes that execute a program and are traced from then on, see `admit`. User space sizes it.
#[btf_map]
pub static ADMITTED: HashMap<Admission, u8, 1> = HashMap::new();

/// Not 0: threads may be inside traced calls that have no return probe, see `wait`.
#[btf_map]
pub static ALL_WAITS: Array<u32, 1> = Array::new();

/// The time at which user space last showed that it runs, by the clock of the records; 0: never.
#[btf_map]
pub static HEARTBEAT: Array<u64, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// Thread id and a number below `BUFFERS_PER_THREAD` → a marker buffer that it has registered.
#[btf_map]
pub static BUFFERS: HashMap<u64, ThreadBuffer, 65536> = HashMap::new();

/// Marker buffer → the number of its events up to its last batch that found no room.
#[btf_map]
pub static CUT_OFF: HashMap<BufferKey, u64, 16384> = HashMap::new();

/// Indirect jumps, by the index in the cookie.
#[btf_map]
pub static JUMPS: Array<JumpTarget, 16384> = Array::new();

/// The value sources of points and functions, by the index in the cookie. User space sizes it.
#[btf_map]
pub static VALUES: Array<ValueSources, 1> = Array::new();

/// Process id → where it keeps its Python functions. User space sizes it.
#[btf_map]
pub static PYTHONS: HashMap<u32, PythonPlaces, 1> = HashMap::new();

/// Thread id → the address of its structure in Python's list of threads, see `python`. User space sizes it.
#[btf_map]
pub static PYTHON_THREADS: HashMap<u32, u64, 1> = HashMap::new();

/// The conditions of functions, by the number in their element of `VALUES`. User space sizes it.
#[btf_map]
pub static CONDITIONS: Array<Condition, 1> = Array::new();

/// Calls that did not meet a condition, see `ctrace_common::UNMET_COUNTERS`. User space sizes it.
#[btf_map]
pub static UNMET: PerCpuArray<u64, 1> = PerCpuArray::new();

/// By thread: where its calls that met a condition may still be open, see `condition`. User space
/// sizes it.
#[btf_map]
pub static MET: Array<u64, 1> = Array::new();

/// Requests to restore return addresses. User space sizes it.
#[btf_map]
pub static RESTORES: RingBuf<RestoreRequest, 4096> = RingBuf::new();

/// By CPU: the state of the thread that waits there, see `ctrace_common::RESTORE_WAITING`. Behind
/// them: `ctrace_common::RESTORE_CONTINUES` and `ctrace_common::RESTORE_ENDS`.
#[btf_map]
pub static RESTORE_STATES: Array<u64, RESTORE_WORDS, { BPF_F_MMAPABLE as usize }> = Array::new();

/// By `ctrace_common::RestoreReason`: how often a thread was held to restore its frames.
#[btf_map]
pub static RESTORED: Array<u64, RESTORE_COUNTERS> = Array::new();

/// Traced processes and their children, also those that are not followed: they share frames. User
/// space sizes it.
#[btf_map]
pub static GUARDED: HashMap<u32, u8, 64> = HashMap::new();

/// Bits by function: calls that get no return probe, although their probe asks for one. User space
/// sizes it.
#[btf_map]
pub static UNRETURNED: Array<u64, 1> = Array::new();

/// When calls are counted that make no events, see `aggregate` and `thrift`.
#[btf_map]
pub static COUNTING: Array<Counting, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// Counts of paths, for each ring's CPUs. User space sizes it, like the following ones.
#[btf_map]
pub static PATH_COUNTS: Array<PathCounts, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The value of the call, caller's path and function → path, see `ctrace_common::VALUE_SHIFT`.
#[btf_map]
pub static PATHS: HashMap<u64, u32, 1> = HashMap::new();

/// Path → the key in `PATHS`, plus 1.
#[btf_map]
pub static PATH_KEYS: Array<u64, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The number of paths, with the one that has no calls.
pub static PATHS_USED: Counter = Counter::new();

/// Value → its number, of those by which calls are counted apart. User space sizes it, like the next one.
#[btf_map]
pub static VALUE_NUMBERS: HashMap<CountedValue, u32, 1> = HashMap::new();

/// Number of a value → the value.
#[btf_map]
pub static COUNTED_VALUES: Array<CountedValue, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The number of values that have numbers.
pub static VALUES_USED: Counter = Counter::new();

/// Thread id → its open calls.
#[btf_map]
pub static OPEN_CALLS: HashMap<u32, OpenCalls, 1> = HashMap::new();

/// The open calls of a thread that has none.
#[btf_map]
pub static NO_OPEN_CALLS: Array<OpenCalls, 1> = Array::new();

#[btf_map]
pub static COUNTED_FUNCTIONS: Array<CountedFunction, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// See `ctrace_common::THREADS_FULL` and its neighbours.
#[btf_map]
pub static UNCOUNTED_CALLS: PerCpuArray<u64, { UNCOUNTED as usize }> = PerCpuArray::new();

/// Thread id → its open calls that have made events or may do so, see `thrift`. User space sizes it, like the next one.
#[btf_map]
pub static KEPT_CALLS: HashMap<u32, KeptCalls, 1> = HashMap::new();

/// Calls that made no events, by function.
#[btf_map]
pub static LEFT_OUT: Array<LeftOutCalls, 1, { BPF_F_MMAPABLE as usize }> = Array::new();

/// The open calls of a thread that has none.
#[btf_map]
pub static NO_KEPT_CALLS: Array<KeptCalls, 1> = Array::new();
