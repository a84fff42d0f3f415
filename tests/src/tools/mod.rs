//! Runs other tools as people do, for the probes that they find and count in a program.

pub mod azurite;
pub mod bpftrace;
pub mod engines;
mod installing;
pub mod perf;
pub mod python;
pub mod s3;
pub mod signed_s3;

/// Checks that it is installed.
pub fn has(tool: &str) -> Result<(), String> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&paths);
    let found = folders.any(|folder| folder.join(tool).is_file());
    if found { Ok(()) } else { Err(format!("{tool} is not installed")) }
}
