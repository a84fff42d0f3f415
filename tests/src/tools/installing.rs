//! Installs tools of tests from the network, one at a time: several programs of tests share a folder.

use crate::process;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A network that is silent must not hold up the tests.
const LIMIT: Duration = Duration::from_secs(300);

/// Waits until nobody else installs into the folder. The lock ends with the file.
pub(super) fn lock(folder: &Path) -> Result<File, String> {
    let locked = || {
        std::fs::create_dir_all(folder)?;
        let file = File::create(folder.join("installing.lock"))?;
        flock(&file, FlockOperation::LockExclusive)?;
        std::io::Result::Ok(file)
    };
    locked().map_err(|error| format!("{}: {error}", folder.display()))
}

/// Runs a command that installs. Returns true if it succeeds in time.
pub(super) fn succeeds(command: &mut Command) -> bool {
    process::run(command, LIMIT).is_ok_and(|finished| finished.shell_code() == 0)
}
