//! Installs tools of tests from the network, one at a time: several programs of tests share a folder.

use super::has;
use crate::process;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};
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

/// Finds or installs a program of a package of npm, in a folder of this name.
pub(super) fn npm(
    folder: &Path,
    name: &str,
    package: &str,
    program: &str,
) -> Result<PathBuf, String> {
    let _only = lock(folder)?;
    has("npm")?;
    let folder = folder.join(name);
    let program = folder.join("node_modules/.bin").join(program);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let install = || {
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
        succeeds(npm.arg(&folder).arg(package))
    };
    match program.exists() || install() && program.exists() {
        true => Ok(program),
        false => Err(format!("npm cannot install {package} in time")),
    }
}
