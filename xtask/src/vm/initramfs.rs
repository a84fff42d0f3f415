//! The file system of the virtual machines: busybox, the checks, ctrace, the targets, and the
//! shared libraries all of them load.

use super::cpio::Archive;
use super::dir;
use crate::machine::{output_of, which};
use crate::{paths, progress};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the image; `script` is the shell command to run, `ctrace` the binary to put in.
pub(super) fn make(kernel: &str, script: &str, ctrace: Option<&Path>) -> Result<PathBuf> {
    let cases = cases_program()?;
    let targets = dir().join("targets");
    progress::must("build the targets", Command::new(&cases).arg("build").arg(&targets))?;
    let mut archive = Archive::default();
    for directory in ["proc", "sys", "dev", "tmp", "root"] {
        archive.directory(directory);
    }
    archive.program("/init", init(script).as_bytes());
    let busybox = which("busybox").context("busybox-static is not installed")?;
    archive.program("/bin/busybox", &std::fs::read(busybox)?);
    let mut libraries = BTreeSet::new();
    let mut add = |archive: &mut Archive, file: &Path, name: &str| -> Result<()> {
        libraries.extend(libraries_of(file));
        archive.program(name, &std::fs::read(file)?);
        Ok(())
    };
    add(&mut archive, &stripped(&cases, "cases")?, "/bin/cases")?;
    if let Some(ctrace) = ctrace {
        add(&mut archive, &stripped(ctrace, "ctrace")?, "/bin/ctrace")?;
    }
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&targets)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".c") {
            add(&mut archive, &file, &format!("/targets/{name}"))?;
        }
    }
    for library in libraries {
        archive.program(&library.to_string_lossy(), &std::fs::read(&library)?);
    }
    let image = dir().join(format!("initramfs-{kernel}.cpio"));
    std::fs::write(&image, archive.finish())?;
    Ok(image)
}

/// What the kernel starts. `vm: end CODE` is what the other side waits for.
fn init(script: &str) -> String {
    format!(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         export PATH=/bin HOME=/root TMPDIR=/tmp RUST_BACKTRACE=1\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sysfs /sys\n\
         mount -t devtmpfs devtmpfs /dev\n\
         mount -t tmpfs tmpfs /tmp\n\
         ip link set lo up\n\
         echo \"vm: begin $(uname -r)\"\n\
         {script}\n\
         echo \"vm: end $?\"\n\
         poweroff -f\n"
    )
}

/// The table of checks as a program.
fn cases_program() -> Result<PathBuf> {
    let mut command = paths::cargo();
    command.args(["build", "--locked", "--package", "ctrace-tests", "--bin", "cases"]);
    progress::must("build the checks", &mut command)?;
    Ok(paths::target().join("debug/cases"))
}

/// A copy without debug information, where `strip` can make one.
fn stripped(file: &Path, name: &str) -> Result<PathBuf> {
    std::fs::create_dir_all(dir())?;
    let copy = dir().join(format!("{name}.stripped"));
    let mut strip = Command::new("strip");
    strip.arg("--strip-debug").arg(file).arg("-o").arg(&copy);
    Ok(if strip.status().is_ok_and(|status| status.success()) { copy } else { file.into() })
}

/// The shared libraries a program loads, its loader included; none for a static one.
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
