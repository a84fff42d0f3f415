//! Counts the events that did not make it into a ring, and the time that threads waited for room.

use crate::bpf::{BpfError, maps::per_cpu::PerCpuCounters};
use ctrace_common::{LOST_EVENTS, LOST_MARKS, LOST_PAYLOADS, LOST_UNATTRIBUTED, WAITED_NANOS};
use ctrace_core::units::Nanos;
use std::{os::fd::OwnedFd, sync::Arc};

/// Totals since the kernel was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Events that found no room.
    pub events: u64,
    /// Lost events that no record's `lost_before` counts.
    pub unattributed: u64,
    /// Events of markers whose batch found no room; in none of the others.
    pub marks: u64,
    /// Payloads that found no room; their events are there.
    pub payloads: u64,
    /// The time for which threads waited until their ring was read.
    pub waited: Nanos,
}

/// A reader of the totals.
#[derive(Clone)]
pub struct LostCounter(PerCpuCounters);

impl LostCounter {
    pub(crate) fn new(map: Arc<OwnedFd>, cpus: usize) -> Self {
        Self(PerCpuCounters::new(map, cpus, "counters of losses"))
    }

    pub fn read(&self) -> Result<Lost, BpfError> {
        Ok(Lost {
            events: self.0.sum(LOST_EVENTS)?,
            unattributed: self.0.sum(LOST_UNATTRIBUTED)?,
            marks: self.0.sum(LOST_MARKS)?,
            payloads: self.0.sum(LOST_PAYLOADS)?,
            waited: Nanos(self.0.sum(WAITED_NANOS)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::{Syscall, fake};
    use std::fs::File;

    fn counter() -> LostCounter {
        LostCounter::new(Arc::new(File::open("/dev/null").unwrap().into()), 3)
    }

    #[test]
    fn the_cpus_are_summed_up() {
        let _fake = fake::Fake::new(|call| {
            let Syscall::Bpf { command: 1, attr } = call else { panic!("no look-up") };
            let (key, values) = (attr.get_u64(8) as *const u32, attr.get_u64(16) as *mut u64);
            // SAFETY: the caller's key and its three values.
            unsafe {
                for cpu in 0..3 {
                    let of_cpu = if *key == LOST_EVENTS { 10 + cpu as u64 } else { *key as u64 };
                    values.add(cpu).write(of_cpu);
                }
            }
            Ok(0)
        });
        assert_eq!(
            counter().read().unwrap(),
            Lost { events: 33, unattributed: 3, marks: 6, payloads: 9, waited: Nanos(12) }
        );
    }

    #[test]
    fn a_refusal_is_told() {
        let _fake = fake::Fake::failing(libc::EPERM);
        assert!(matches!(counter().read(), Err(BpfError::Map { what: "counters of losses", .. })));
    }
}
