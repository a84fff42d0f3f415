//! What user space decides before the programs are loaded.
//!
//! They are read-only globals: the verifier knows their values, so a branch on them costs nothing
//! in the program that runs.

use aya_ebpf::Global;

/// 1: a probe counts only in processes of `TRACED`; 0: the link itself is filtered.
#[unsafe(no_mangle)]
pub static FILTER: Global<u32> = Global::new(0);

/// 1: children of traced processes are traced from their first instruction.
#[unsafe(no_mangle)]
pub static FOLLOW: Global<u32> = Global::new(0);

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
