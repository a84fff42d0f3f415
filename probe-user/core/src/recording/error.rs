//! Errors of reading a recording.

use std::io;

/// The reason why a recording cannot be read, worded to follow the name of its file.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The system reports an error.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file does not begin like a recording.
    #[error("is no recording of ctrace")]
    NotARecording,
    /// A later ctrace wrote it.
    #[error(
        "has version {found} of the format, this ctrace reads version {known}: use a newer one"
    )]
    Newer {
        /// The version of its format.
        found: u32,
        /// The latest version that this ctrace reads.
        known: u32,
    },
    /// Something in it contradicts the format.
    #[error("is broken: {0}")]
    Malformed(&'static str),
    /// It claims more calls than so many bytes plausibly hold: reading them would take long.
    #[error(
        "tells of more than {most} calls in its {bytes} bytes, which ctrace hardly wrote; \
         --max-calls N reads up to so many"
    )]
    TooManyCalls {
        /// The largest number of calls that is accepted.
        most: u64,
        /// The size of the file.
        bytes: u64,
    },
    /// Nobody waits for it any more.
    #[error("is not read any more: the reader was stopped")]
    Stopped,
    /// It was cut off before anything was recorded.
    #[error("holds nothing: it ends before the first function was recorded")]
    Empty,
}
