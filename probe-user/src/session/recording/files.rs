//! The files of a recording: what they are called, and which may be written to.

use anyhow::{Context, bail, ensure};
use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

/// `trace.ctrace`, `trace.1.ctrace`, …
pub(super) fn numbered(path: &Path, number: u32) -> PathBuf {
    match (number, path.extension()) {
        (0, _) => path.to_owned(),
        (_, Some(extension)) => {
            let mut name = std::ffi::OsString::from(format!("{number}."));
            name.push(extension);
            path.with_extension(name)
        }
        (_, None) => path.with_extension(number.to_string()),
    }
}

/// Opens for writing; what is no recording stays untouched.
pub(super) fn open(path: &Path) -> anyhow::Result<File> {
    let cannot = || format!("cannot write {}", path.display());
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .with_context(cannot)?;
    if !file.metadata().with_context(cannot)?.is_file() {
        bail!("{}: a recording needs a file", cannot());
    }
    let mut head = [0; 8];
    match file.read_exact(&mut head) {
        Ok(()) if !ctrace_core::record::is_recording(&head) => {
            bail!("{} is there already and is no recording; remove it first", path.display())
        }
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            ensure!(
                file.metadata()?.len() == 0,
                "{} is there already and is no recording; remove it first",
                path.display()
            );
        }
        other => other.with_context(cannot)?,
    }
    std::io::Seek::rewind(&mut file)?;
    Ok(file)
}
