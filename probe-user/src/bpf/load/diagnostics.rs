//! Forwards messages of the eBPF programs to `tracing`.
//!
//! Messages are rare: a kernel field that cannot be read, a full map.

use crate::bpf::BpfError;
use aya_log::EbpfLogger;
use log::{Level, Log, Metadata, Record};
use std::os::fd::{AsFd, BorrowedFd};

/// The messages. Its descriptor becomes readable when there are some.
pub struct Diagnostics(EbpfLogger<Forward>);

impl Diagnostics {
    pub(crate) fn new(ebpf: &mut aya::Ebpf) -> Result<Self, BpfError> {
        EbpfLogger::init_with_logger(ebpf, Forward)
            .map(Self)
            .map_err(|error| BpfError::Diagnostics { reason: error.to_string() })
    }

    /// Forwards the new messages.
    pub fn flush(&mut self) {
        self.0.flush();
    }
}

impl AsFd for Diagnostics {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

struct Forward;

impl Log for Forward {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let message = record.args();
        match record.level() {
            Level::Error => tracing::error!(target: "ebpf", "{message}"),
            Level::Warn => tracing::warn!(target: "ebpf", "{message}"),
            Level::Info => tracing::info!(target: "ebpf", "{message}"),
            Level::Debug => tracing::debug!(target: "ebpf", "{message}"),
            Level::Trace => tracing::trace!(target: "ebpf", "{message}"),
        }
    }

    fn flush(&self) {}
}
