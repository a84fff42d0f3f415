//! Finds `ctrace-store`, and checks that nobody but root can have changed it.

use crate::{daemon::config, files::is_from_us};
use rustix::fs::lstat;
use std::{
    fs::Metadata,
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

const NAME: &str = "ctrace-store";

/// Returns why tables of this configuration could not be sent.
pub(in crate::daemon) fn refusal(config: &config::Fleet) -> Option<String> {
    config.store.as_ref()?;
    find().err()
}

/// Returns the program beside our own.
pub(super) fn find() -> Result<PathBuf, String> {
    // After an upgrade the kernel adds a word to the name of the old file, and its folder is the same.
    let ours = std::env::current_exe().map_err(|error| format!("cannot find {NAME}: {error}"))?;
    let path = ours.with_file_name(NAME);
    let unusable = |error| {
        format!("`store` in [fleet] needs {}, which cannot be used: {error}", path.display())
    };
    let facts = path.symlink_metadata().map_err(unusable)?;
    match doubt(&facts, &path).or(doubt_of_folders(&path).map_err(unusable)?) {
        Some(doubt) => Err(format!("{} is not started: {doubt}", path.display())),
        None => Ok(path),
    }
}

fn doubt(facts: &Metadata, path: &Path) -> Option<String> {
    const OTHERS_WRITE: u32 = 0o022;
    const RUN: u32 = 0o111;
    if !facts.is_file() || facts.mode() & RUN == 0 {
        return Some("it is no program".to_owned());
    }
    if facts.uid() != 0 {
        return Some(format!("it belongs to user {}, not to root", facts.uid()));
    }
    let can_be_written = facts.mode() & OTHERS_WRITE != 0;
    can_be_written.then(|| format!("others can write it: `chmod go-w {}`", path.display()))
}

/// Returns the folder in which others could put another entry in the place of the path's next one.
fn doubt_of_folders(path: &Path) -> io::Result<Option<String>> {
    let mut entry = lstat(path)?;
    for path in path.ancestors().skip(1) {
        let folder = lstat(path)?;
        if !is_from_us(&folder, &entry) {
            return Ok(Some(format!("others can change what is in {}", path.display())));
        }
        entry = folder;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _};

    #[test]
    fn a_program_that_others_can_change_is_not_started() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        let mut doubts = Vec::new();
        for mode in [0o755, 0o644, 0o775, 0o757] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            doubts.push(doubt(&path.metadata().unwrap(), &path).unwrap_or_default());
        }
        if path.metadata().unwrap().uid() == 0 {
            assert_eq!(doubts[0], "");
            assert!(doubts[2..].iter().all(|doubt| doubt.starts_with("others can write it")));
            std::os::unix::fs::chown(&path, Some(4_000), None).unwrap();
            let doubt = doubt(&path.metadata().unwrap(), &path).unwrap();
            assert_eq!(doubt, "it belongs to user 4000, not to root");
            assert_eq!(doubt_of_folders(&path).unwrap(), None);
            let inner = folder.path().join("a/b");
            fs::create_dir_all(&inner).unwrap();
            let group = fs::Permissions::from_mode(0o775);
            fs::set_permissions(folder.path().join("a"), group).unwrap();
            assert!(doubt_of_folders(&inner).unwrap().unwrap().ends_with("/a"));
            let link = folder.path().join("link");
            std::os::unix::fs::symlink("/bin/true", &link).unwrap();
            assert_eq!(super::doubt(&link.symlink_metadata().unwrap(), &link).unwrap(), doubts[1]);
        }
        assert_eq!(doubts[1], "it is no program");
        assert!(doubt(&folder.path().metadata().unwrap(), folder.path()).is_some());
    }
}
