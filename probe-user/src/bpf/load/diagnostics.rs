//! Forwards messages of the eBPF programs to `tracing`.
//!
//! Messages are rare: a kernel field that cannot be read, a full map.

use super::maps::{Logs, Maps};
use crate::bpf::BpfError;
use aya_log::EbpfLogger;
use log::{Level, Log, Metadata, Record};
use std::{
    fs,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd},
    path::PathBuf,
};

/// The messages. Its descriptor becomes readable when there are some.
pub struct Diagnostics(EbpfLogger<Forward>);

impl Diagnostics {
    /// Takes the messages of the programs, of which one is `program`.
    pub(crate) fn new(maps: &mut Maps, program: BorrowedFd<'_>) -> Result<Self, BpfError> {
        let logger = match &mut maps.logs {
            Logs::OfLoader(loaded) => EbpfLogger::init_with_logger(loaded, Forward),
            Logs::OfProgram => {
                maps.logs = Logs::Taken;
                EbpfLogger::init_from_id_with_logger(number_of(program)?, Forward)
            }
            Logs::Taken => {
                let reason = "they have a reader".to_owned();
                return Err(BpfError::Diagnostics { reason });
            }
        };
        logger.map(Self).map_err(|error| BpfError::Diagnostics { reason: error.to_string() })
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

/// Returns the kernel's number of a program.
fn number_of(program: BorrowedFd<'_>) -> Result<u32, BpfError> {
    let path = PathBuf::from(format!("/proc/self/fdinfo/{}", program.as_raw_fd()));
    let text = fs::read_to_string(&path)
        .map_err(|source| BpfError::Unreadable { path: path.clone(), source })?;
    let number = text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok());
    number.ok_or(BpfError::Malformed { path })
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
