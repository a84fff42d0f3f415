//! Counts the CPU time of a process, optionally with all that it forks, in the kernel. /proc misses
//! children that come and go between two reads, and it counts in ticks.

use crate::bpf::{BpfError, sys};
use ctrace_core::units::{Nanos, Tid};
use std::{
    fs::File,
    io::{self, Read as _},
};

/// A counter from its start on. New threads, and optionally forked processes, are counted with the
/// thread that made them, even after their end.
pub(crate) struct CpuClock {
    threads: Vec<File>,
}

impl CpuClock {
    /// Starts the counters. Threads that are gone are left out.
    pub(crate) fn start(
        threads: impl IntoIterator<Item = Tid>,
        children: bool,
    ) -> Result<Self, BpfError> {
        let mut clock = Self { threads: Vec::new() };
        for thread in threads {
            match sys::open_cpu_clock(thread.0, children) {
                Ok(fd) => clock.threads.push(fd.into()),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(source) => {
                    let what = "a counter of CPU time".into();
                    return Err(BpfError::permission("count CPU time", &source)
                        .unwrap_or(BpfError::Create { what, source }));
                }
            }
        }
        Ok(clock)
    }

    /// Returns the number of threads that it was started for.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    pub(crate) fn read(&self) -> io::Result<Nanos> {
        let mut sum = Nanos::ZERO;
        for mut thread in &self.threads {
            let mut count = [0; 8];
            thread.read_exact(&mut count)?;
            sum = sum.saturating_add(Nanos(u64::from_le_bytes(count)));
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::{Syscall, fake};

    #[test]
    fn threads_that_are_gone_are_left_out() {
        let _fake = fake::Fake::new(|call| match call {
            Syscall::PerfEventOpen { pid: 2, .. } => fake::error(libc::ESRCH),
            _ => fake::fd(),
        });
        assert_eq!(CpuClock::start([1, 2, 3].map(Tid), false).unwrap().threads.len(), 2);
    }

    #[test]
    fn missing_rights_are_told() {
        let _fake = fake::Fake::failing(libc::EACCES);
        let error = CpuClock::start([Tid(1)], true).err().unwrap();
        assert!(matches!(error, BpfError::Permission { .. }), "{error}");
    }

    #[test]
    fn children_that_ended_are_counted() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let tid = status.lines().find_map(|line| line.strip_prefix("Pid:")).unwrap();
        let clock = match CpuClock::start([Tid(tid.trim().parse().unwrap())], true) {
            Ok(clock) => clock,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let before = clock.read().unwrap();
        let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        std::process::Command::new("sh").args(["-c", script]).status().unwrap();
        let used = clock.read().unwrap().since(before);
        assert!(used > Nanos::from_millis(5), "{used:?}");
    }
}
