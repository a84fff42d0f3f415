//! `cargo xtask dist`: makes what a release consists of, in target/dist: an archive with a static
//! program, a Debian package, the crates, the headers with their recipes, and checksums.
//!
//! A check of the gate makes the same of the binary that tests run. So [`assemble`] takes its
//! binaries, and does not build them.

mod archive;
mod crates;
mod deb;
mod headers;
mod licences;
mod tree;

pub(crate) use crates::{NAMES as CRATES, copy_of_checkout};

use crate::artifacts::Ebpf;
use crate::setup::{self, Need};
use crate::{artifacts, build, machine, paths, progress, store, symbols};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The limit of the Debian package.
const MOST_BYTES: u64 = 8_000_000;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print what would be installed instead of installing it
    #[arg(long)]
    no_install: bool,
    /// The address below which the files will be; recipes for the headers name it
    #[arg(long, value_name = "URL", default_value = "https://example.org/ctrace")]
    url: String,
}

/// The built parts that packages contain.
pub(crate) struct Parts {
    /// The programs for the archive, which need no library.
    pub alone: Programs,
    /// The programs for the Debian package, which use the host's C library and so its accounts.
    pub shared: Programs,
    pub ebpf: Ebpf,
}

/// What is installed.
pub(crate) struct Programs {
    pub ctrace: PathBuf,
    /// `ctrace-store`.
    pub store: PathBuf,
}

/// The way in which the packages are made.
pub(crate) struct Way<'a> {
    pub url: &'a str,
    /// Compress little.
    pub fast: bool,
}

pub(crate) fn main(options: &Options) -> Result<()> {
    setup::ensure(&[Need::Bpf, Need::Compilers, Need::Packing], options.no_install)?;
    let folder = all(&options.url)?;
    for entry in files_of(&folder)? {
        let bytes = entry.metadata()?.len();
        println!("{:>6.2} MB  {}", bytes as f64 / 1e6, paths::shown(&entry));
    }
    Ok(())
}

/// Builds and packs all of a release. Returns the folder.
pub(crate) fn all(url: &str) -> Result<PathBuf> {
    build::packaged()?;
    store::build_packaged()?;
    let ebpf = artifacts::ebpf(&mut build::command(build::PACKAGED))?;
    let other = artifacts::ebpf(&mut build::command(build::PACKAGED_ALONE))?.object;
    ensure!(
        std::fs::read(&ebpf.object)? == std::fs::read(&other)?,
        "two builds of the eBPF programs differ: compare {} and {}",
        ebpf.object.display(),
        other.display()
    );
    let alone = Programs { ctrace: paths::packaged_alone(), store: store::packaged_alone() };
    let shared = Programs { ctrace: paths::packaged(), store: store::packaged() };
    let parts = Parts { alone, shared, ebpf };
    // Cargo has put the programs back as it built them.
    for program in [&parts.alone.ctrace, &parts.shared.ctrace] {
        symbols::split_off(program)?;
    }
    let folder = paths::target().join("dist");
    assemble(&parts, &Way { url, fast: false }, &folder)?;
    let deb = folder.join(deb::name());
    let bytes = std::fs::metadata(&deb)?.len();
    ensure!(bytes <= MOST_BYTES, "{} has {bytes} bytes, more than {MOST_BYTES}", deb.display());
    Ok(folder)
}

/// Makes all packages of built parts, in a new folder.
pub(crate) fn assemble(parts: &Parts, way: &Way<'_>, folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let work = folder.join("work");
    let licences = licences::text()?;
    archive::make(&parts.alone, &licences, way, &work.join("archive"), folder)?;
    deb::make(&parts.shared, &licences, way, &work.join("deb"), folder)?;
    crates::make(&parts.ebpf, &work.join("source"), folder)?;
    headers::make(way, &work.join("headers"), folder)?;
    let mut names = Vec::new();
    for file in files_of(folder)? {
        names.push(file.file_name().context("a file")?.to_owned());
    }
    let mut sums = Command::new("sha256sum");
    sums.current_dir(folder).args(names);
    let sums = progress::must("checksums", &mut sums)?.output;
    std::fs::write(folder.join("SHA256SUMS"), sums)?;
    Ok(())
}

/// The regular files of a folder, by name.
pub(crate) fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// The name of the archive, without its ending, and of the folder in it.
pub(crate) fn archive_name() -> String {
    format!("ctrace-{VERSION}-{}-linux", std::env::consts::ARCH)
}

pub(crate) fn deb_name() -> String {
    deb::name()
}

/// The time of the last commit, so that packages of one commit are the same bytes.
fn commit_time() -> Result<String> {
    let root = paths::root().display().to_string();
    machine::output_of("git", &["-C", &root, "log", "-1", "--format=%ct"])
        .context("packages are made in a checkout: git finds no commit here")
}

/// Packs a folder, the same bytes each time.
fn pack(parent: &Path, name: &str, way: &Way<'_>, to: &Path) -> Result<()> {
    let level = if way.fast { 1 } else { 9 };
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{}", commit_time()?))
        .arg(format!("--use-compress-program=gzip -n{level}"));
    tar.arg("-C").arg(parent).arg("-cf").arg(to).arg(name);
    progress::must(&format!("pack {name}"), &mut tar).map(drop)
}

/// Copies a file to a new place, and makes the folders above it.
fn put(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let bytes = std::fs::read(from).with_context(|| from.display().to_string())?;
    write(to, &bytes, mode)
}

fn write(to: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(to.parent().context("a file has a folder")?)?;
    std::fs::write(to, bytes).with_context(|| to.display().to_string())?;
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(mode))?;
    Ok(())
}

/// Fills the gaps of a template. One that stays open is a mistake.
fn filled(template: &Path, gaps: &[(&str, &str)]) -> Result<String> {
    let mut text =
        std::fs::read_to_string(template).with_context(|| template.display().to_string())?;
    for (gap, value) in gaps {
        text = text.replace(&format!("@{gap}@"), value);
    }
    let words: Vec<&str> = text.split('@').collect();
    match words.get(1..words.len() - 1).and_then(|words| words.iter().find(|word| is_gap(word))) {
        Some(gap) => bail!("{}: nothing fills @{gap}@", template.display()),
        None => Ok(text),
    }
}

fn is_gap(word: &str) -> bool {
    !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_uppercase() || b"_0123456789".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_have_the_version_of_the_program() {
        let version = std::fs::read_to_string(paths::root().join("marker-crate/VERSION"));
        assert_eq!(version.expect("it is there").trim(), VERSION);
    }

    #[test]
    fn a_gap_that_nothing_fills_is_a_mistake() {
        let folder = tempfile::tempdir().expect("a folder");
        let template = folder.path().join("template");
        std::fs::write(&template, "a@b.org @NAME@ @URL@").expect("written");
        let text = filled(&template, &[("NAME", "n"), ("URL", "u")]).expect("both are filled");
        assert_eq!(text, "a@b.org n u");
        std::fs::write(&template, "@NAME@ @SHA256@").expect("written");
        let error = filled(&template, &[("NAME", "n")]).expect_err("one is open").to_string();
        assert!(error.contains("@SHA256@"), "{error}");
    }
}
