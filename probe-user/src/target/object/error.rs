//! The reasons why a file is no object that can be traced.

use crate::target::elf::ElfError;
use std::io;
use std::path::PathBuf;

/// The reason why a file cannot be used, in one line.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    #[error("cannot open {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{} is not a regular file", path.display())]
    NotAFile { path: PathBuf },
    #[error("{} {error}", path.display())]
    Elf { path: PathBuf, error: ElfError },
}
