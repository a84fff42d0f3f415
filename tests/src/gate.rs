//! Decides whether a live test can run here, and gives the reason if not.

use crate::env::{Env, Link, kernel, target_dir};
use crate::targets::Targets;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Returns the environment of a live test, or the reason to skip it.
pub fn live(link: Link) -> Result<Env, String> {
    root_and_bpf()?;
    let (major, minor) = link.since();
    let (here_major, here_minor) = kernel();
    if (here_major, here_minor) < (major, minor) {
        return Err(format!(
            "{link} links need Linux {major}.{minor}, this is {here_major}.{here_minor}"
        ));
    }
    Ok(Env { ctrace: ctrace_with_bpf()?, targets: Targets::on_host(), link, slower: 1 })
}

/// Returns the binary for a test of the command line alone, whatever was built into it.
pub fn binary() -> Result<PathBuf, String> {
    let path = match std::env::var_os("CTRACE_BIN") {
        Some(path) => PathBuf::from(path),
        None => target_dir().join("debug/ctrace"),
    };
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!("no {}: run `cargo build --package ctrace`", path.display()))
    }
}

/// Returns the binary, if it contains the eBPF object.
pub fn ctrace_with_bpf() -> Result<PathBuf, String> {
    let path = binary()?;
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    if holds_bpf_object(&bytes) {
        Ok(path)
    } else {
        Err(format!(
            "{} was built without a BPF toolchain: run `cargo xtask setup` and build again",
            path.display()
        ))
    }
}

/// Returns whether a build of ctrace contains its eBPF programs: they have a mark there, which
/// `probe-user/build/main.rs` writes.
pub fn holds_bpf_object(bytes: &[u8]) -> bool {
    const MARK: &[u8; 8] = b"\x7fpackBPF";
    bytes.windows(MARK.len()).any(|at| at == MARK)
}

/// Checks for the rights and kernel features that tracing needs.
pub fn root_and_bpf() -> Result<(), String> {
    const CAP_SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    if effective & (1 << CAP_SYS_ADMIN) == 0 {
        return Err("needs root (CAP_SYS_ADMIN)".into());
    }
    if !Path::new("/proc/sys/kernel/unprivileged_bpf_disabled").exists() {
        return Err("this kernel has no bpf system call".into());
    }
    if !Path::new("/sys/bus/event_source/devices/uprobe").exists() {
        return Err("this kernel has no uprobes (or /sys is not mounted)".into());
    }
    Ok(())
}

/// Reports a skipped test, past libtest's capture, so that it is seen and can be counted.
pub fn skipped(name: &str, why: &str) {
    // One write keeps lines of other threads apart. A closed stderr cannot be helped.
    let line = format!("\nskipped {name}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Returns the name of the running test, from its thread.
pub fn test_name() -> String {
    std::thread::current().name().unwrap_or("?").to_owned()
}

/// Takes the value of a `Result<_, String>`, or skips the surrounding test with the reason.
#[macro_export]
macro_rules! or_skip {
    ($gate:expr) => {
        match $gate {
            Ok(value) => value,
            Err(why) => {
                $crate::gate::skipped(
                    &format!("{}::{}", module_path!(), $crate::gate::test_name()),
                    &why,
                );
                return;
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bpf_object_is_found_inside_other_bytes() {
        let mut bytes = b"some machine code before it".to_vec();
        assert!(!holds_bpf_object(&bytes));
        bytes.extend(b"\x7fpackBPFand behind it");
        assert!(holds_bpf_object(&bytes));
        bytes.truncate(bytes.len() - 15);
        assert!(!holds_bpf_object(&bytes));
    }
}
