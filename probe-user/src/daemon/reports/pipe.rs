//! Writes reports into a pipe or a device, whose reader may be slow or absent.

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use std::{
    fs::File,
    io::{self, ErrorKind, Write as _},
    time::{Duration, Instant},
};

/// The longest wait of a report for room.
const PATIENCE: Duration = Duration::from_secs(1);

/// The reason why a report is not in the pipe, or only a part of it.
pub(super) struct Cut {
    pub(super) error: io::Error,
    /// True if a part of it is in the pipe.
    pub(super) is_begun: bool,
}

/// Writes to a nonblocking pipe.
pub(super) fn write(mut pipe: &File, text: &[u8]) -> Result<(), Cut> {
    let until = Instant::now() + PATIENCE;
    let mut left = text;
    while !left.is_empty() {
        let written = match pipe.write(left) {
            Ok(0) => Err(ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(pipe, until).map(|()| 0),
            written => written,
        };
        match written {
            Ok(bytes) => left = &left[bytes..],
            Err(error) => return Err(Cut { error, is_begun: left.len() < text.len() }),
        }
    }
    Ok(())
}

fn wait(pipe: &File, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        let why = format!("it is full, and nobody made room within {} s", PATIENCE.as_secs());
        return Err(io::Error::new(ErrorKind::TimedOut, why));
    }
    let left = Timespec::try_from(left).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(pipe, PollFlags::OUT)], Some(&left)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
