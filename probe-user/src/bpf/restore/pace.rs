//! CPUs and priority of the restorer's threads.
//!
//! A held thread occupies its CPU until a restorer has written. A restorer that waits for this very
//! CPU would wait in vain. So there are two, each with CPUs of its own, and both precede all
//! ordinary threads. They sleep except while a thread is held.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::time::Duration;

/// The number of restorer threads.
pub(super) const RESTORERS: usize = 2;
/// The time between two looks at what another thread is about to do. It may need this CPU for that.
pub(super) const PAUSE: Duration = Duration::from_micros(50);

/// Gives the current thread, one of the restorers, its CPUs and its priority. Without the right to
/// do so, held threads may have to stop.
pub(super) fn take_place(which: usize) {
    if let Ok(all) = sched_getaffinity(None) {
        let usable = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu));
        let mut own = CpuSet::new();
        usable.skip(which).step_by(RESTORERS).for_each(|cpu| own.set(cpu));
        if own.count() > 0 {
            let _ = sched_setaffinity(None, &own);
        }
    }
    precede();
}

/// Has the current thread precede all ordinary ones.
pub(super) fn precede() {
    // The kernel's `struct sched_param` is one number. musl's function always fails.
    let priority: libc::c_int = 1;
    // SAFETY: it changes this thread only, and reads a number that lives.
    unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority);
    }
}
