//! Checks format and lints, of the workspace and of the eBPF programs.

use super::{Options, PASSED, skipped};
use crate::machine::{self, BpfCompiler};
use crate::summary::{Counts, Outcome};
use crate::{paths, progress, store};
use anyhow::Result;
use std::path::Path;
use std::process::Command;

pub(super) fn format(_: &Options) -> Result<(Outcome, Counts)> {
    progress::must("format", paths::cargo().args(["fmt", "--all", "--check"]))?;
    let mut of_store = paths::cargo();
    of_store.args(["fmt", "--manifest-path", store::MANIFEST, "--check"]);
    progress::must("format of ctrace-store", &mut of_store)?;
    Ok(PASSED)
}

fn ebpf_dir() -> std::path::PathBuf {
    paths::root().join("probe-ebpf")
}

pub(super) fn format_ebpf(_: &Options) -> Result<(Outcome, Counts)> {
    if !ebpf_dir().join("Cargo.toml").exists() {
        return skipped("there is no probe-ebpf/Cargo.toml");
    }
    let mut command = paths::cargo();
    command.current_dir(ebpf_dir()).args(["fmt", "--check"]);
    progress::must("format of the eBPF programs", &mut command)?;
    Ok(PASSED)
}

/// A compiler that lints while it builds would make other code than the one that users build, with
/// larger stack frames. So this is a run of its own.
pub(super) fn clippy(_: &Options) -> Result<(Outcome, Counts)> {
    let mut command = paths::cargo_behind_others();
    // It would build the eBPF programs once more.
    command.env("CTRACE_BPF_CARGO", "none");
    command.args(["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    progress::must("clippy", &mut command)?;
    Ok(PASSED)
}

/// Uses the clippy of the compiler that builds them.
pub(super) fn clippy_ebpf(_: &Options) -> Result<(Outcome, Counts)> {
    if !ebpf_dir().join("Cargo.toml").exists() {
        return skipped("there is no probe-ebpf/Cargo.toml");
    }
    let mut command;
    match machine::bpf_compiler() {
        Some(BpfCompiler::Rustup(name)) => {
            if machine::output_of("rustup", &["run", &name, "cargo", "clippy", "-V"]).is_none() {
                return skipped(format!("{name} has no clippy"));
            }
            command = Command::new("rustup");
            command.args(["run", &name, "cargo", "clippy", "-Z", "build-std=core"]);
        }
        Some(BpfCompiler::System(cargo)) => {
            let bin = cargo.parent().unwrap_or(Path::new("/usr/bin"));
            if !bin.join("cargo-clippy").is_file() {
                return skipped(format!("{} has no clippy beside it", cargo.display()));
            }
            command = Command::new(&cargo);
            command.arg("clippy").env("RUSTC_BOOTSTRAP", "1");
            // This path precedes rustup's shims, which would choose another compiler.
            let path = std::env::var_os("PATH").unwrap_or_default();
            let path = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(path)?);
        }
        Some(BpfCompiler::Given(cargo)) => {
            return skipped(format!("CTRACE_BPF_CARGO names {}", cargo.display()));
        }
        None => return skipped("there is no compiler for eBPF programs"),
    }
    command.args(["--locked", "--release", "--target", "bpfel-unknown-none"]);
    command.args(["--", "-D", "warnings"]).current_dir(ebpf_dir());
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    command.env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("LD_LIBRARY_PATH");
    command.env("CARGO_TARGET_DIR", paths::target().join("ebpf-clippy"));
    command.env("RUSTFLAGS", "--cfg=bpf_target_arch=\"x86_64\"");
    progress::must("clippy of the eBPF programs", &mut command)?;
    Ok(PASSED)
}
