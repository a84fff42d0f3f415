//! Makes all packages of the binary that tests run, and looks into them. Whether they install and
//! trace is the subject of `containers`, which takes minutes.

use super::{PASSED, skipped};
use crate::artifacts::{self, Ebpf};
use crate::dist::{self, Parts, Programs, VERSION, Way};
use crate::summary::{Counts, Outcome};
use crate::{build, machine, paths, progress, store};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn run(_: &super::Options) -> Result<(Outcome, Counts)> {
    if !machine::holds_bpf_object(&paths::tested()) {
        return skipped("the binary of the tests has no eBPF programs inside");
    }
    if machine::which("dpkg-deb").is_none() || machine::which("objcopy").is_none() {
        return skipped("packages are made with dpkg-deb and objcopy");
    }
    let ebpf = artifacts::ebpf(&mut build::tests())?;
    let work = paths::target().join("packages");
    std::fs::create_dir_all(&work)?;
    programs_are_the_same_elsewhere(&ebpf, &work)?;
    let program = work.join("ctrace");
    let mut strip = Command::new("objcopy");
    progress::must("strip", strip.arg("--strip-all").arg(paths::tested()).arg(&program))?;
    store::build_for_tests()?;
    let sends = work.join(store::NAME);
    let mut strip = Command::new("objcopy");
    progress::must("strip", strip.arg("--strip-all").arg(store::tested()).arg(&sends))?;
    let object = ebpf.object.clone();
    let of_both = || Programs { ctrace: program.clone(), store: sends.clone() };
    let parts = Parts { alone: of_both(), shared: of_both(), ebpf };
    let folder = work.join("dist");
    dist::assemble(&parts, &Way { url: "https://example.org", fast: true }, &folder)?;
    look_into(&folder, &object)?;
    Ok(PASSED)
}

/// Builds the eBPF programs in another folder, and compares the object byte by byte.
fn programs_are_the_same_elsewhere(ebpf: &Ebpf, work: &Path) -> Result<()> {
    // Not below the repository, whose workspace cargo would find.
    let folder = tempfile::tempdir()?;
    dist::copy_of_checkout(folder.path())?;
    let (package, out) = (folder.path().join("probe-user"), folder.path().join("out"));
    std::fs::create_dir(&out)?;
    // The build script of the binary does it again, behind the tests beside it.
    let mut build = Command::new("nice");
    build.args(["-n", "19"]).arg(&ebpf.script).current_dir(&package);
    build.env("CARGO_MANIFEST_DIR", &package).env("OUT_DIR", &out);
    build.env("CARGO_CFG_TARGET_ARCH", std::env::consts::ARCH);
    progress::must("eBPF programs elsewhere", &mut build)?;
    let again = std::fs::read(out.join("ctrace.bpf.o"))?;
    if again != std::fs::read(&ebpf.object)? {
        let kept = work.join("elsewhere.bpf.o");
        std::fs::write(&kept, again)?;
        bail!(
            "the eBPF programs depend on the folder they are built in: compare {} and {}",
            ebpf.object.display(),
            kept.display()
        );
    }
    Ok(())
}

fn look_into(folder: &Path, object: &Path) -> Result<()> {
    let archive =
        listed("tar", &["-tzf"], &folder.join(format!("{}.tar.gz", dist::archive_name())))?;
    let deb = folder.join(dist::deb_name());
    let package = listed("dpkg-deb", &["--contents"], &deb)?;
    for file in [
        "bin/ctrace",
        "bin/ctrace-store",
        "include/ctrace.h",
        "include/ctrace/ctrack/ctrack.hpp",
        "lib/systemd/system/ctrace.service",
        "share/bash-completion/completions/ctrace",
        "share/cmake/ctrace/ctrace-config-version.cmake",
        "share/doc/ctrace/LICENSE-MIT",
        "share/man/man1/ctrace-attach.1.gz",
        "share/pkgconfig/ctrace.pc",
    ] {
        for list in [&archive, &package] {
            ensure!(
                list.lines().any(|line| line.ends_with(&format!("/{file}"))),
                "{file} is not packed"
            );
        }
    }
    let unit = folder.join("work/deb/usr/lib/systemd/system/ctrace.service");
    let starts = std::fs::read_to_string(&unit)?.contains("ExecStart=/usr/bin/ctrace ");
    ensure!(starts, "{} starts another program", unit.display());
    let depends = machine::output_of("dpkg-deb", &["-f", &deb.display().to_string(), "Depends"]);
    let depends = depends.unwrap_or_default();
    ensure!(depends.contains("libc6 (>= 2."), "the Debian package depends on `{depends}` only");
    for name in dist::CRATES {
        let packed = folder.join(format!("{name}-{VERSION}.crate"));
        let list = listed("tar", &["-tzf"], &packed)?;
        let lacks = |file: &str| !list.lines().any(|line| line.ends_with(&format!("/{file}")));
        for file in ["Cargo.toml", "README.md", "LICENSE-APACHE", "src/lib.rs"] {
            ensure!(!lacks(file), "{} lacks {file}", packed.display());
        }
        ensure!(lacks("tests"), "{} has tests", packed.display());
    }
    let unpacked = unpack_crate("ctrace", folder, &folder.join("work/unpacked"))?;
    let shipped =
        std::fs::read(unpacked.join("ctrace.bpf.o")).context("the crate lacks its object")?;
    ensure!(shipped == std::fs::read(object)?, "the crate has another object than the program");
    Ok(())
}

/// Unpacks a crate of a release below a folder.
pub(super) fn unpack_crate(name: &str, dist: &Path, to: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(to)?;
    let name = format!("{name}-{VERSION}");
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(dist.join(format!("{name}.crate"))).arg("-C").arg(to);
    progress::must(&format!("unpack {name}"), &mut tar)?;
    Ok(to.join(name))
}

fn listed(program: &str, options: &[&str], file: &Path) -> Result<String> {
    let output = Command::new(program).args(options).arg(file).output()?;
    if !output.status.success() {
        bail!("{program} cannot read {}", file.display());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
