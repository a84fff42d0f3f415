//! Makes the file system of the virtual machines: busybox, the checks, ctrace, the targets, and the
//! shared libraries of all of them.

use super::cpio::Archive;
use super::dir;
use crate::machine::{output_of, which};
use crate::{paths, progress};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the image of a machine that runs the checks by the shell command `script`, with the
/// binary `ctrace`.
pub(super) fn make(kernel: &str, script: &str, ctrace: Option<&Path>) -> Result<PathBuf> {
    let cases = paths::cases();
    let targets = dir().join("targets");
    progress::must("build the targets", Command::new(&cases).arg("build").arg(&targets))?;
    let mut tree = Tree::new(&init(script))?;
    tree.program(&stripped(&cases, "cases")?, "/bin/cases")?;
    if let Some(ctrace) = ctrace {
        tree.program(&stripped(ctrace, "ctrace")?, "/bin/ctrace")?;
    }
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&targets)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".c") {
            tree.program(&file, &format!("/targets/{name}"))?;
        }
    }
    tree.finish(kernel)
}

/// A file system under construction.
pub(super) struct Tree {
    archive: Archive,
    libraries: BTreeSet<PathBuf>,
}

impl Tree {
    /// Adds busybox and the kernel's first program.
    pub(super) fn new(init: &str) -> Result<Self> {
        let mut tree = Self { archive: Archive::default(), libraries: BTreeSet::new() };
        for directory in ["proc", "sys", "dev", "tmp", "root"] {
            tree.archive.directory(directory)?;
        }
        tree.text("/init", init)?;
        let busybox = which("busybox").context("busybox-static is not installed")?;
        tree.program(&busybox, "/bin/busybox")?;
        Ok(tree)
    }

    /// Adds a program and its shared libraries.
    pub(super) fn program(&mut self, file: &Path, name: &str) -> Result<()> {
        self.libraries.extend(libraries_of(file));
        self.file(file, name)
    }

    pub(super) fn file(&mut self, file: &Path, name: &str) -> Result<()> {
        let content =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(self.archive.program(name, &content)?)
    }

    pub(super) fn text(&mut self, name: &str, content: &str) -> Result<()> {
        Ok(self.archive.program(name, content.as_bytes())?)
    }

    /// Writes the image.
    pub(super) fn finish(mut self, name: &str) -> Result<PathBuf> {
        for library in std::mem::take(&mut self.libraries) {
            self.file(&library, &library.to_string_lossy())?;
        }
        let image = dir().join(format!("initramfs-{name}.cpio"));
        std::fs::write(&image, self.archive.finish()?)?;
        Ok(image)
    }
}

/// Returns the kernel's first program. The host waits for `vm: end CODE`.
fn init(script: &str) -> String {
    format!(
        "{SETTING_UP}\
         echo \"vm: begin $(uname -r)\"\n\
         {script}\n\
         echo \"vm: end $?\"\n\
         poweroff -f\n"
    )
}

/// The beginning of each init.
pub(super) const SETTING_UP: &str = "#!/bin/busybox sh\n\
    /bin/busybox --install -s /bin\n\
    export PATH=/bin HOME=/root TMPDIR=/tmp RUST_BACKTRACE=1\n\
    mount -t proc proc /proc\n\
    mount -t sysfs sysfs /sys\n\
    mount -t devtmpfs devtmpfs /dev\n\
    mount -t tmpfs tmpfs /tmp\n\
    ip link set lo up\n";

/// Copies a file without debug information, if `strip` can.
pub(super) fn stripped(file: &Path, name: &str) -> Result<PathBuf> {
    std::fs::create_dir_all(dir())?;
    let copy = dir().join(format!("{name}.stripped"));
    let mut strip = Command::new("strip");
    strip.arg("--strip-debug").arg(file).arg("-o").arg(&copy);
    Ok(if strip.status().is_ok_and(|status| status.success()) { copy } else { file.into() })
}

/// Returns the shared libraries of a program, with its loader; none for a static one.
fn libraries_of(file: &Path) -> Vec<PathBuf> {
    let listed = output_of("ldd", &[&file.to_string_lossy()]).unwrap_or_default();
    parse_ldd(&listed)
}

fn parse_ldd(listed: &str) -> Vec<PathBuf> {
    listed
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_loader_are_taken_from_ldd() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffe)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 \
                      (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n";
        assert_eq!(
            parse_ldd(listed),
            [
                PathBuf::from("/lib/x86_64-linux-gnu/libc.so.6"),
                PathBuf::from("/lib64/ld-linux-x86-64.so.2")
            ]
        );
        assert!(parse_ldd("\tstatically linked").is_empty());
    }

    #[test]
    fn the_exit_code_of_the_script_is_told() {
        assert!(init("true").contains("\ntrue\necho \"vm: end $?\"\n"));
    }
}
