//! Packs the crates. They are packed in a copy of the checkout that also has the eBPF object: the
//! object is never in a checkout, where it could grow old unseen. `cargo publish` runs there too.

use super::{VERSION, put, write};
use crate::artifacts::Ebpf;
use crate::{paths, progress};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// The published crates, each after those that it depends on.
pub(crate) const NAMES: &[&str] =
    &["ctrace-common", "ctrace-core", "ctrace-marker-macros", "ctrace-marker", "ctrace"];

pub(super) fn make(ebpf: &Ebpf, work: &Path, folder: &Path) -> Result<()> {
    copy_of_checkout(work)?;
    put(&ebpf.object, &work.join("probe-user/ctrace.bpf.o"), 0o644)?;
    write(&work.join("probe-user/ctrace.bpf.txt"), ebpf.toolchain.as_bytes(), 0o644)?;
    let packed = folder.join("work/crates");
    let mut command = paths::cargo();
    command.current_dir(work).env("CARGO_TARGET_DIR", &packed);
    // Installing them is a check of its own.
    command.args(["package", "--locked", "--no-verify"]);
    command.args(NAMES.iter().flat_map(|name| ["--package", name]));
    progress::must("crates", &mut command)?;
    for name in NAMES {
        let file = format!("{name}-{VERSION}.crate");
        put(&packed.join("package").join(&file), &folder.join(&file), 0o644)?;
    }
    Ok(())
}

/// Copies the files that git knows, as they are now.
pub(crate) fn copy_of_checkout(to: &Path) -> Result<()> {
    let listed =
        Command::new("git").current_dir(paths::root()).args(["ls-files", "-z"]).output()?;
    if !listed.status.success() {
        bail!("packages are made in a checkout: {}", String::from_utf8_lossy(&listed.stderr));
    }
    let listed = String::from_utf8(listed.stdout).context("names are UTF-8")?;
    for name in listed.split_terminator('\0') {
        let from = paths::root().join(name);
        // One that is removed and not yet committed.
        if from.exists() {
            put(&from, &to.join(name), 0o644)?;
        }
    }
    Ok(())
}
