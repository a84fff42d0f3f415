//! Tells threads from the interrupts on top of them.
//!
//! The kernel counts both in a word of each processor. Programs have no way to that word by its name
//! where the kernel keeps no names of its data. But it lies at a known distance from the processor's
//! queue of threads, to which each thread has a pointer.

use crate::{kernel::Kernel, settings};
use ctrace_common::WokenFrom;

/// The bits of the count that interrupts set, also those that are handled a little later (softirqs). They are
/// the same in all kernels that have `--cpu`.
const INTERRUPTS: u32 = 0x00ff_0000 | 0x100;

/// Returns whether the program runs in a thread, or in an interrupt. The idle thread counts as one: it does
/// nothing of its own.
#[inline(always)]
pub fn woken_from() -> WokenFrom {
    let current = Kernel::current();
    let queue = Kernel(current.word(&settings::TASK_CFS_RQ)).word(&settings::CFS_RQ_RQ);
    let own = Kernel(queue.wrapping_sub(settings::RUNQUEUES.load() as u64));
    // A thread on its way to another processor may have the queue of that one.
    if own.word(&settings::CPU_CURRENT) != current.0 {
        return WokenFrom::Unknown;
    }
    match (own.read::<u32>(&settings::CPU_PREEMPT_COUNT), current.task()) {
        (Some(count), _) if count & INTERRUPTS != 0 => WokenFrom::Interrupt,
        (Some(_), Some(task)) if task.tid != 0 => WokenFrom::Thread,
        (Some(_), Some(_)) => WokenFrom::Interrupt,
        _ => WokenFrom::Unknown,
    }
}
