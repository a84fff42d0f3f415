//! Fetches a Debian kernel package and takes the kernel out of it, into target/vm.

use super::dir;
use crate::machine::output_of;
use crate::packages;
use crate::progress;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The newest kernel of a series (`6.1`, `6.12`) among Debian's cloud kernels.
pub(super) fn fetch(series: &str) -> Result<PathBuf> {
    let image = dir().join(format!("vmlinuz-{series}"));
    if image.exists() {
        return Ok(image);
    }
    let mut candidates = candidates(series);
    if candidates.is_empty() || packages::lists_are_old() {
        // Only root can update the lists. Others use the existing ones.
        let _ = progress::run("apt-get update", Command::new("apt-get").arg("update"));
        candidates = self::candidates(series);
    }
    if candidates.is_empty() {
        bail!("apt knows no linux-image-{series}…-cloud-amd64: are Debian 12's sources enabled?");
    }
    let mut last = None;
    // With old lists, the newest may be gone from the archive.
    for package in candidates.iter().take(3) {
        match unpack(package, &image) {
            Ok(()) => return Ok(image),
            Err(error) => last = Some(error),
        }
    }
    Err(last.context("there were candidates")?)
}

fn candidates(series: &str) -> Vec<String> {
    let prefix = format!("linux-image-{series}.");
    let names = output_of("apt-cache", &["pkgnames", &prefix]).unwrap_or_default();
    newest_first(names.lines(), &prefix)
}

fn newest_first<'a>(names: impl Iterator<Item = &'a str>, prefix: &str) -> Vec<String> {
    let mut names: Vec<&str> = names
        .filter(|name| name.starts_with(prefix))
        .filter(|name| name.ends_with("-cloud-amd64") || name.ends_with("-cloud-amd64-unsigned"))
        .collect();
    let version = |name: &str| -> Vec<u32> {
        name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
    };
    names.sort_by(|a, b| version(b).cmp(&version(a)).then(a.len().cmp(&b.len())));
    names.into_iter().map(str::to_owned).collect()
}

fn unpack(package: &str, image: &Path) -> Result<()> {
    std::fs::create_dir_all(dir())?;
    let work = tempfile::tempdir_in(dir())?;
    let mut download = Command::new("apt-get");
    download.args(["download", package]).current_dir(work.path());
    progress::must(&format!("fetch {package}"), &mut download)?;
    let file = first_file(work.path(), |name| name.ends_with(".deb"))?;
    let tree = work.path().join("tree");
    let mut unpack = Command::new("dpkg-deb");
    progress::must(&format!("unpack {package}"), unpack.arg("-x").arg(file).arg(&tree))?;
    let kernel = first_file(&tree.join("boot"), |name| name.starts_with("vmlinuz-"))?;
    std::fs::rename(kernel, image)?;
    Ok(())
}

fn first_file(dir: &Path, wanted: impl Fn(&str) -> bool) -> Result<PathBuf> {
    std::fs::read_dir(dir)?
        .flatten()
        .find(|entry| wanted(&entry.file_name().to_string_lossy()))
        .map(|entry| entry.path())
        .with_context(|| format!("what is looked for is not in {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_cloud_kernel_of_the_series_comes_first() {
        let names = [
            "linux-image-6.1.0-9-cloud-amd64",
            "linux-image-6.1.0-44-cloud-amd64-dbg",
            "linux-image-6.1.0-44-cloud-amd64-unsigned",
            "linux-image-6.1.0-44-cloud-amd64",
            "linux-image-6.12.90+deb12-cloud-amd64",
            "linux-image-6.1.0-45-amd64",
        ];
        assert_eq!(
            newest_first(names.into_iter(), "linux-image-6.1."),
            [
                "linux-image-6.1.0-44-cloud-amd64",
                "linux-image-6.1.0-44-cloud-amd64-unsigned",
                "linux-image-6.1.0-9-cloud-amd64"
            ]
        );
    }
}
