//! Asks a real dynamic loader, to compare with. For tests only: the loader maps what it lists.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files that a loader lists, and the names that it does not find.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) files: BTreeSet<PathBuf>,
    pub(super) missing: BTreeSet<String>,
}

/// Asks a loader about a trusted program.
pub(super) fn ask(
    loader: &str,
    exe: &Path,
    variables: &[(&str, &str)],
    directory: &Path,
) -> Listed {
    let mut command = Command::new(loader);
    command.env_clear().envs(variables.iter().copied()).current_dir(directory);
    // Only musl's loader looks at its own name, and only glibc's knows the option.
    match loader.contains("musl") {
        true => std::os::unix::process::CommandExt::arg0(&mut command, "ldd"),
        false => command.arg("--list"),
    };
    let output = command.arg(exe).output().unwrap();
    parse(&[output.stdout, output.stderr].concat(), directory)
}

/// Parses lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`. For a missing
/// library, glibc complains instead of listing; musl does both.
pub(super) fn parse(output: &[u8], directory: &Path) -> Listed {
    let mut listed = Listed::default();
    for line in output.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if let Some(name) = complaint(line) {
            listed.missing.insert(String::from_utf8_lossy(name).into_owned());
            continue;
        }
        let arrow = memchr::memmem::find(line, b" => ");
        let (name, place) = arrow.map_or((line, line), |at| (&line[..at], &line[at + 4..]));
        if place.starts_with(b"not found") {
            listed.missing.insert(String::from_utf8_lossy(name).into_owned());
            continue;
        }
        let Some(end) = memchr::memmem::rfind(place, b" (0x") else { continue };
        // The kernel's object has no file.
        if !place.starts_with(b"linux-vdso") {
            listed.files.insert(directory.join(OsStr::from_bytes(&place[..end])));
        }
    }
    listed
}

/// Returns the library that a complaint of glibc or musl names.
fn complaint(line: &[u8]) -> Option<&[u8]> {
    const MARKS: [&[u8]; 2] =
        [b"error while loading shared libraries: ", b"Error loading shared library "];
    let names = MARKS
        .iter()
        .find_map(|mark| memchr::memmem::find(line, mark).map(|at| &line[at + mark.len()..]))?;
    names.split(|byte| *byte == b':').next()
}
