//! A Python with packages of PyPI, in a folder of the build.

use super::installing::{lock, succeeds};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Finds or makes a Python with packages of PyPI. `folder`: that of the build's temporary files.
pub fn find(folder: &Path, packages: &[&str], modules: &str) -> Result<PathBuf, String> {
    let _only = lock(folder)?;
    let folder = folder.join("engines");
    let python = folder.join("bin/python");
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
