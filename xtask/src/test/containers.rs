//! Installs each package of a release where nothing else is, and traces the demo program there: in
//! an empty folder, on a minimal Debian, and with a stable compiler that knows no crate but these.

use super::{packages, skipped};
use crate::dist::{self, VERSION};
use crate::setup::{self, Need};
use crate::summary::{Counts, Outcome};
use crate::{demo, machine, paths, progress};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounts what a container has, in a mount namespace of its own, and runs a command inside.
const INSIDE: &str = "for each in proc sys dev; do \
    mkdir -p \"$0/$each\" && mount --rbind \"/$each\" \"$0/$each\" || exit 1; done; exec chroot \"$0\" \"$@\"";

/// A folder for the containers, and what they share.
struct Ground {
    folder: PathBuf,
    /// The folder of the packages.
    dist: PathBuf,
}

type Check = (&'static str, fn(&Ground) -> Result<()>);

const CHECKS: &[Check] = &[
    ("the archive in an empty container", archive_in_nothing),
    ("the archive on a minimal Debian", archive_on_debian),
    ("the Debian package on a minimal Debian", package_on_debian),
    ("the crates with plain stable Rust", crates),
];

pub(super) fn run(_: &super::Options) -> Result<(Outcome, Counts)> {
    if let Some(why) = machine::no_live_tests() {
        return skipped(why);
    }
    setup::ensure(&[Need::Bpf, Need::Compilers, Need::Packing, Need::Containers], false)?;
    let dist = dist::all("https://example.org/ctrace")?;
    let folder = paths::target().join("containers");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let ground = Ground { folder, dist };
    let mut counts = Counts::default();
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        match check(&ground) {
            Ok(()) => counts.passed += 1,
            Err(error) => {
                counts.failed += 1;
                failed.push(format!("{name}: {error:#}"));
            }
        }
    }
    let failed = (!failed.is_empty()).then(|| Outcome::Failed(failed.join("; ")));
    Ok((failed.unwrap_or(Outcome::Passed), counts))
}

fn archive_in_nothing(ground: &Ground) -> Result<()> {
    let root = ground.folder.join("empty");
    unpack_archive(ground, &root.join("usr/local"))?;
    starts(&root, "/usr/local/bin/ctrace-store")?;
    demo::compile(&root.join("demo"), &["-static"])?;
    traces(&root, "/usr/local/bin/ctrace")
}

fn archive_on_debian(ground: &Ground) -> Result<()> {
    let root = debian(ground, "archive")?;
    unpack_archive(ground, &root.join("usr/local"))?;
    demo::compile(&root.join("demo"), &[])?;
    traces(&root, "ctrace")
}

fn package_on_debian(ground: &Ground) -> Result<()> {
    let root = debian(ground, "deb")?;
    std::fs::copy(ground.dist.join(dist::deb_name()), root.join("ctrace.deb"))?;
    progress::must("dpkg -i", &mut inside(&root, &["dpkg", "-i", "/ctrace.deb"]))?;
    starts(&root, "/usr/bin/ctrace-store")?;
    demo::compile(&root.join("demo"), &[])?;
    traces(&root, "ctrace")?;
    progress::must("dpkg -r", &mut inside(&root, &["dpkg", "-r", "ctrace"]))?;
    let left = root.join("usr/bin/ctrace");
    ensure!(!left.exists(), "{} stays when the package goes", left.display());
    Ok(())
}

fn starts(root: &Path, program: &str) -> Result<()> {
    progress::must(program, &mut inside(root, &[program, "--version"])).map(drop)
}

/// Installs the crates as `cargo install ctrace` does. A folder takes the place of crates.io.
fn crates(ground: &Ground) -> Result<()> {
    let folder = ground.folder.join("crates");
    let (index, home) = (folder.join("index"), folder.join("home"));
    let mut vendor = paths::cargo();
    vendor.args(["vendor", "--locked", "--versioned-dirs"]).arg(&index);
    progress::must("copy dependencies", &mut vendor)?;
    for name in dist::CRATES {
        let unpacked = packages::unpack_crate(name, &ground.dist, &index)?;
        let packed = ground.dist.join(format!("{name}-{VERSION}.crate"));
        let sum = machine::output_of("sha256sum", &[&packed.display().to_string()]);
        let sum = sum.as_deref().and_then(|line| line.split(' ').next()).context("a checksum")?;
        let known = format!("{{\"files\":{{}},\"package\":\"{sum}\"}}");
        std::fs::write(unpacked.join(".cargo-checksum.json"), known)?;
    }
    std::fs::create_dir_all(&home)?;
    let mut config = String::new();
    let _ = writeln!(config, "[source.crates-io]\nreplace-with = \"index\"");
    let _ = writeln!(config, "[source.index]\ndirectory = {:?}", index.display().to_string());
    std::fs::write(home.join("config.toml"), config)?;
    let sysroot = machine::output_of("rustc", &["--print", "sysroot"]).context("rustc")?;
    let mut install = Command::new(Path::new(&sysroot).join("bin/cargo"));
    // A toolchain, the system's linker, and nothing else.
    install.env_clear().env("PATH", format!("{sysroot}/bin:/usr/bin:/bin"));
    install.env("HOME", &home).env("CARGO_HOME", &home).current_dir(&folder);
    install.args(["install", "ctrace", "--locked", "--root"]).arg(folder.join("installed"));
    progress::must("cargo install ctrace", &mut install)?;
    let root = debian(ground, "crate")?;
    std::fs::copy(folder.join("installed/bin/ctrace"), root.join("usr/bin/ctrace"))?;
    demo::compile(&root.join("demo"), &[])?;
    traces(&root, "ctrace")
}

fn unpack_archive(ground: &Ground, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(ground.dist.join(format!("{}.tar.gz", dist::archive_name())));
    tar.args(["--strip-components=1", "-C"]).arg(to);
    progress::must("unpack the archive", &mut tar).map(drop)
}

/// Makes a Debian that has nothing but what every Debian has.
fn debian(ground: &Ground, name: &str) -> Result<PathBuf> {
    let first = ground.folder.join("debian");
    if !first.exists() {
        let release = std::fs::read_to_string("/etc/os-release")?;
        let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let suite = suite.context("/etc/os-release has no VERSION_CODENAME")?;
        let mut make = Command::new("debootstrap");
        make.args(["--variant=minbase", suite]).arg(&first);
        progress::must("minimal Debian", &mut make)?;
    }
    let root = ground.folder.join(name);
    progress::must("copy of it", Command::new("cp").arg("-a").args([&first, &root]))?;
    Ok(root)
}

fn inside(root: &Path, command: &[&str]) -> Command {
    let mut outside = Command::new("unshare");
    outside.args(["--mount", "sh", "-c", INSIDE]).arg(root).args(command);
    outside.env_clear().env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    outside
}

/// Traces the demo program of a container, and looks for its calls in the report.
fn traces(root: &Path, ctrace: &str) -> Result<()> {
    let command = [
        ctrace,
        "run",
        "-f",
        "*_request",
        "--format",
        "json",
        "-o",
        "/report.json",
        "--",
        "/demo",
        "1",
    ];
    progress::must(&format!("trace in {}", paths::shown(root)), &mut inside(root, &command))?;
    let report: Value = serde_json::from_slice(&std::fs::read(root.join("report.json"))?)?;
    let functions = report["functions"].as_array().context("the report has no functions")?;
    let calls = |name| functions.iter().find(|it| it["name"] == name)?["calls"].as_u64();
    match (calls("handle_request"), calls("parse_request")) {
        (Some(1..), Some(1..)) => Ok(()),
        (handled, parsed) => {
            bail!("calls of handle_request: {handled:?}, parse_request: {parsed:?}")
        }
    }
}
