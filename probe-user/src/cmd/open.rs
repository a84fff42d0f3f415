//! Opens recordings: one file, or several that `record --rotate` made of one.

use anyhow::Context;
use ctrace_core::record::{Joined, Recording};
use std::{fs::File, path::Path};

/// What a recording is read from.
pub(super) type Files = Joined<File>;

/// Opens a recording; an error is one line that names the file.
pub(super) fn open(paths: &[impl AsRef<Path>]) -> anyhow::Result<Recording<Files>> {
    let files = paths.iter().map(|path| {
        let name = path.as_ref().display().to_string();
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        let file = Recording::open(file).map_err(|error| anyhow::anyhow!("{name} {error}"))?;
        Ok((name, file))
    });
    Ok(Recording::join(files.collect::<anyhow::Result<_>>()?)?)
}
