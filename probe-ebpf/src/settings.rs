//! Settings that user space fixes before the programs are loaded.
//!
//! They are read-only globals: the verifier knows their values, so a branch on them costs nothing
//! in the running program.

use aya_ebpf::Global;
use ctrace_common::MAX_CPUS;

/// 1: a probe counts only in processes of `TRACED`; 0: the link itself is filtered.
#[unsafe(no_mangle)]
pub static FILTER: Global<u32> = Global::new(0);

/// 1: children of traced processes are traced from their first instruction.
#[unsafe(no_mangle)]
pub static FOLLOW: Global<u32> = Global::new(0);

/// 1: the traced process is yet to execute the command. Its probes count only from then on.
#[unsafe(no_mangle)]
pub static LAUNCHES: Global<u32> = Global::new(0);

/// 1: return probes are guarded, and functions can lose theirs.
#[unsafe(no_mangle)]
pub static GUARDS: Global<u32> = Global::new(0);

/// 1: markers may be traced, and their threads' buffers are known.
#[unsafe(no_mangle)]
pub static MARKS: Global<u32> = Global::new(0);

/// 1: values may tell of the Python function around a call.
#[unsafe(no_mangle)]
pub static PYTHON: Global<u32> = Global::new(0);

/// 1: the kernel's verifier knows the instruction of [`crate::turns::repeat`].
#[unsafe(no_mangle)]
pub static COMPARES_TURNS: Global<u32> = Global::new(0);

/// What processes that execute a program are admitted by: bits of `ctrace_common::BY_PROGRAM` and its
/// neighbours; 0: none are.
#[unsafe(no_mangle)]
pub static ADMITS: Global<u32> = Global::new(0);

/// Pages of slots in a ring: a power of two.
#[unsafe(no_mangle)]
pub static RING_PAGES: Global<u32> = Global::new(1);

/// By CPU: the first page of its ring in `RINGS`.
#[unsafe(no_mangle)]
static FIRST_PAGE: [u32; MAX_CPUS] = [0; MAX_CPUS];

/// Returns the first page of a CPU's ring.
#[inline(always)]
pub fn first_page(cpu: u32) -> u32 {
    let first = (&raw const FIRST_PAGE).cast::<u32>();
    // SAFETY: within the table. User space has changed it, which the compiler does not know.
    unsafe { first.add(cpu as usize % MAX_CPUS).read_volatile() }
}

/// 1: calls are counted where they end, without an event of each.
#[unsafe(no_mangle)]
pub static AGGREGATES: Global<u32> = Global::new(0);

/// The shortest calls that are counted, in nanoseconds.
#[unsafe(no_mangle)]
pub static SHORTEST_CALL: Global<u64> = Global::new(0);

/// The most calls of a thread inside each other that make events; 0: all do.
#[unsafe(no_mangle)]
pub static MOST_NESTED: Global<u32> = Global::new(0);

/// The shortest calls that make events, in nanoseconds; 0: all do.
#[unsafe(no_mangle)]
pub static SHORTEST_EVENTS: Global<u64> = Global::new(0);

/// Paths that have counts.
#[unsafe(no_mangle)]
pub static PATH_LIMIT: Global<u32> = Global::new(1);

/// By CPU: the first of its counts in `PATH_COUNTS`.
#[unsafe(no_mangle)]
static FIRST_COUNTS: [u32; MAX_CPUS] = [0; MAX_CPUS];

/// Returns the first of a CPU's counts of paths.
#[inline(always)]
pub fn first_counts(cpu: u32) -> u32 {
    let first = (&raw const FIRST_COUNTS).cast::<u32>();
    // SAFETY: as above.
    unsafe { first.add(cpu as usize % MAX_CPUS).read_volatile() }
}

// Byte offsets of the fields that the control programs read, from the running kernel's BTF.

/// `task_struct.pid`
#[unsafe(no_mangle)]
pub static TASK_PID: Global<u32> = Global::new(0);
/// `task_struct.tgid`
#[unsafe(no_mangle)]
pub static TASK_TGID: Global<u32> = Global::new(0);
/// `task_struct.exit_code`
#[unsafe(no_mangle)]
pub static TASK_EXIT_CODE: Global<u32> = Global::new(0);
/// `task_struct.group_leader`
#[unsafe(no_mangle)]
pub static TASK_GROUP_LEADER: Global<u32> = Global::new(0);
/// `task_struct.signal`
#[unsafe(no_mangle)]
pub static TASK_SIGNAL: Global<u32> = Global::new(0);
/// `signal_struct.live`
#[unsafe(no_mangle)]
pub static SIGNAL_LIVE: Global<u32> = Global::new(0);
/// `signal_struct.flags`
#[unsafe(no_mangle)]
pub static SIGNAL_FLAGS: Global<u32> = Global::new(0);
/// `signal_struct.group_exit_code`
#[unsafe(no_mangle)]
pub static SIGNAL_GROUP_EXIT_CODE: Global<u32> = Global::new(0);

// The fields that tell how long a thread worked. All are 0 where that is not known.

/// `task_struct.se.sum_exec_runtime`
#[unsafe(no_mangle)]
pub static TASK_USED: Global<u32> = Global::new(0);
/// `task_struct.sched_info.run_delay`
#[unsafe(no_mangle)]
pub static TASK_QUEUED: Global<u32> = Global::new(0);
/// `task_struct.nvcsw`
#[unsafe(no_mangle)]
pub static TASK_YIELDS: Global<u32> = Global::new(0);

/// `task_struct.thread.fsbase`, which `python` reads; set where it is asked for.
#[unsafe(no_mangle)]
pub static TASK_FSBASE: Global<u32> = Global::new(0);

// The fields that `admit` reads, set where it is asked for.

/// `linux_binprm.file`
#[unsafe(no_mangle)]
pub static BINPRM_FILE: Global<u32> = Global::new(0);
/// `file.f_inode`
#[unsafe(no_mangle)]
pub static FILE_INODE: Global<u32> = Global::new(0);
/// `inode.i_ino`
#[unsafe(no_mangle)]
pub static INODE_INO: Global<u32> = Global::new(0);
/// `inode.i_sb`
#[unsafe(no_mangle)]
pub static INODE_SB: Global<u32> = Global::new(0);
/// `super_block.s_dev`
#[unsafe(no_mangle)]
pub static SB_DEV: Global<u32> = Global::new(0);
/// `task_struct.cred`
#[unsafe(no_mangle)]
pub static TASK_CRED: Global<u32> = Global::new(0);
/// `cred.euid`
#[unsafe(no_mangle)]
pub static CRED_EUID: Global<u32> = Global::new(0);

// The fields that `restore` and `wait` read. All are 0 where the kernel lacks one: no site is guarded
// then, and all waits are reported.

/// `task_struct.utask`
#[unsafe(no_mangle)]
pub static TASK_UTASK: Global<u32> = Global::new(0);
/// `task_struct.stack`
#[unsafe(no_mangle)]
pub static TASK_STACK: Global<u32> = Global::new(0);
/// `task_struct.mm`
#[unsafe(no_mangle)]
pub static TASK_MM: Global<u32> = Global::new(0);
/// `task_struct.sas_ss_size`
#[unsafe(no_mangle)]
pub static TASK_SAS_SS_SIZE: Global<u32> = Global::new(0);
/// `uprobe_task.return_instances`
#[unsafe(no_mangle)]
pub static UTASK_RETURN_INSTANCES: Global<u32> = Global::new(0);
/// `return_instance.func`
#[unsafe(no_mangle)]
pub static INSTANCE_FUNC: Global<u32> = Global::new(0);
/// `return_instance.stack`
#[unsafe(no_mangle)]
pub static INSTANCE_STACK: Global<u32> = Global::new(0);
/// `return_instance.orig_ret_vaddr`
#[unsafe(no_mangle)]
pub static INSTANCE_ORIG_RET_VADDR: Global<u32> = Global::new(0);
/// `return_instance.next`
#[unsafe(no_mangle)]
pub static INSTANCE_NEXT: Global<u32> = Global::new(0);
/// `mm_struct.uprobes_state.xol_area`
#[unsafe(no_mangle)]
pub static MM_XOL_AREA: Global<u32> = Global::new(0);
/// `xol_area.vaddr`
#[unsafe(no_mangle)]
pub static XOL_AREA_VADDR: Global<u32> = Global::new(0);
/// `sigaction.sa_flags`
#[unsafe(no_mangle)]
pub static SIGACTION_SA_FLAGS: Global<u32> = Global::new(0);

// The fields that `interrupt` reads, set where it is asked for. The last three are places among the data
// of a processor.

/// `task_struct.se.cfs_rq`
#[unsafe(no_mangle)]
pub static TASK_CFS_RQ: Global<u32> = Global::new(0);
/// `cfs_rq.rq`
#[unsafe(no_mangle)]
pub static CFS_RQ_RQ: Global<u32> = Global::new(0);
/// `runqueues`
#[unsafe(no_mangle)]
pub static RUNQUEUES: Global<u32> = Global::new(0);
/// `current_task`, or `pcpu_hot.current_task`
#[unsafe(no_mangle)]
pub static CPU_CURRENT: Global<u32> = Global::new(0);
/// `__preempt_count`, or `pcpu_hot.preempt_count`
#[unsafe(no_mangle)]
pub static CPU_PREEMPT_COUNT: Global<u32> = Global::new(0);
