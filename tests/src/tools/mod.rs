//! Other people's tools, run as people run them: what they see in a program and count there.

pub mod bpftrace;
pub mod perf;

/// That it is installed, or why a test must do without.
pub fn has(tool: &str) -> Result<(), String> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&paths);
    let found = folders.any(|folder| folder.join(tool).is_file());
    if found { Ok(()) } else { Err(format!("{tool} is not installed")) }
}
