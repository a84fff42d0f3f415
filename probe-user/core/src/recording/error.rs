//! Why a recording cannot be read.

use std::io;

/// Why a recording cannot be read, in words that follow the name of its file.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The system refuses.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file begins otherwise.
    #[error("is no recording of ctrace")]
    NotARecording,
    /// A later ctrace wrote it.
    #[error(
        "has version {found} of the format, this ctrace reads version {known}: use a newer one"
    )]
    Newer {
        /// The version of the format that it has.
        found: u32,
        /// The latest that can be read here.
        known: u32,
    },
    /// Something in it contradicts the format.
    #[error("is broken: {0}")]
    Malformed(&'static str),
    /// They would take long, and were hardly recorded.
    #[error(
        "tells of more than {most} calls in its {bytes} bytes, which ctrace hardly wrote; \
         --max-calls N reads up to so many"
    )]
    TooManyCalls {
        /// As many are read.
        most: u64,
        /// That the file has.
        bytes: u64,
    },
    /// It was cut off before there was anything in it.
    #[error("holds nothing: it ends before the first function was recorded")]
    Empty,
}
