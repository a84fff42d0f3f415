//! Counters that each CPU has for itself, so that none waits for another.

use crate::bpf::{BpfError, sys};
use std::{
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
};

/// A map of counters. Each read is one system call.
#[derive(Clone)]
pub(crate) struct PerCpuCounters {
    map: Arc<OwnedFd>,
    cpus: usize,
    /// The name of the counters for people, in the plural.
    what: &'static str,
}

impl PerCpuCounters {
    pub(crate) fn new(map: Arc<OwnedFd>, cpus: usize, what: &'static str) -> Self {
        Self { map, cpus, what }
    }

    /// Returns the sum of a counter over all CPUs.
    pub(crate) fn sum(&self, counter: u32) -> Result<u64, BpfError> {
        let mut values = vec![0; self.cpus];
        sys::map_lookup(self.map.as_fd(), counter, &mut values)
            .map_err(|source| BpfError::Map { what: self.what, source })?;
        Ok(values.iter().sum())
    }
}
