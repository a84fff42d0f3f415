//! Opens recordings: one file, or several that `record --rotate` made of one.

use crate::{
    cli::{LensArgs, RECORDING},
    ui,
};
use ctrace_core::recording::{RecordError, Recording};
use std::{fs::File, io::ErrorKind, path::Path};

/// Opens a recording. An error is one line that names the file. Files that a killed ctrace had just
/// begun are left out, with a message.
pub(super) fn open(paths: &[impl AsRef<Path>], lens: &LensArgs) -> anyhow::Result<Recording> {
    Ok(Recording::join(each(paths, lens)?)?)
}

/// Opens several recordings. Returns each with its name.
pub(super) fn open_several(
    paths: &[impl AsRef<Path>],
    lens: &LensArgs,
) -> anyhow::Result<Vec<(String, Recording)>> {
    let all = Recording::join_each(each(paths, lens)?)?.into_iter();
    Ok(all.map(|whole| (whole.files.join(" + "), whole.recording)).collect())
}

/// Opens a file that may be a recording.
pub(super) fn open_file(path: &Path) -> anyhow::Result<File> {
    File::open(path).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::NotFound if path.as_os_str().as_encoded_bytes().starts_with(b"-") => {
                " (behind `--` there are files only: options go before it)"
            }
            ErrorKind::NotFound if path == Path::new(RECORDING) => {
                " (the default where no other file is named; `ctrace record` writes it)"
            }
            ErrorKind::NotFound => " (`ctrace record` writes recordings)",
            _ => "",
        };
        anyhow::Error::new(error).context(format!("cannot open {}{hint}", path.display()))
    })
}

fn each(paths: &[impl AsRef<Path>], lens: &LensArgs) -> anyhow::Result<Vec<(String, Recording)>> {
    ctrace_core::recording::replay::start_threads()?;
    let (mut files, mut left_out) = (Vec::new(), Vec::new());
    for path in paths {
        let name = path.as_ref().display().to_string();
        let file = open_file(path.as_ref())?;
        let is_empty = file.metadata().is_ok_and(|file| file.is_file() && file.len() == 0);
        let opened = match lens.max_calls {
            Some(most) => Recording::open_up_to(file, most),
            None => Recording::open(file),
        };
        match opened {
            Ok(file) => files.push((name, file)),
            Err(RecordError::Empty) => left_out.push(format!("{name} {}", RecordError::Empty)),
            Err(_) if is_empty => left_out.push(format!("{name} is empty")),
            Err(error) => anyhow::bail!("{name} {error}"),
        }
    }
    match left_out.first() {
        Some(why) if files.is_empty() => anyhow::bail!("{why}"),
        _ => left_out.iter().for_each(|why| ui::say(&format!("{why}; it is left out"))),
    }
    Ok(files)
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
