//! Why a recording cannot be read.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("is no recording of ctrace")]
    NotARecording,
    #[error(
        "has version {found} of the format, this ctrace reads version {known}: use a newer one"
    )]
    Newer { found: u32, known: u32 },
    #[error("is broken: {0}")]
    Malformed(&'static str),
    #[error("holds nothing: it ends before the first function was recorded")]
    Empty,
}
