//! A Python with packages of PyPI, in a folder of the build.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// One installs at a time: they share a folder.
static INSTALLING: Mutex<()> = Mutex::new(());

/// Finds or makes a Python with packages of PyPI. `folder`: that of the build's temporary files.
pub fn find(folder: &Path, packages: &[&str], modules: &str) -> Result<PathBuf, String> {
    let _only = INSTALLING.lock().map_err(|error| error.to_string())?;
    let folder = folder.join("engines");
    let python = folder.join("bin/python");
    let succeeds = |command: &mut Command| command.output().is_ok_and(|it| it.status.success());
    let has = || succeeds(Command::new(&python).args(["-c", &format!("import {modules}")]));
    let install = ["-m", "pip", "install", "--quiet"];
    let is_made =
        || python.exists() || succeeds(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    let made =
        has() || is_made() && succeeds(Command::new(&python).args(install).args(packages)) && has();
    match made {
        true => Ok(python),
        false => Err(format!("no python3, or not all of {} from PyPI", packages.join(" "))),
    }
}
