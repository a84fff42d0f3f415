//! Packs the headers for C and C++ with their build files, and writes the recipes of package
//! managers, which name that archive and its checksum.

use super::{VERSION, Way, filled, pack, put, write};
use crate::{paths, progress};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

const FILES: &[&str] = &[
    "CMakeLists.txt",
    "README.md",
    "VERSION",
    "include/ctrace.h",
    "include/ctrack/ctrack.hpp",
    "include/ctrack_compat.hpp",
    "include/ctrack_print.hpp",
    "include/ctrack_tables.hpp",
    "include/ctrack_types.hpp",
    "meson.build",
    "packaging/ctrace-config-version.cmake.in",
    "packaging/ctrace-config.cmake",
    "packaging/ctrace.pc.in",
    "LICENSE-APACHE",
    "LICENSE-MIT",
];

/// Recipes, without the ending of templates.
const RECIPES: &[&str] = &[
    "ctrace.wrap.in",
    "conan/conandata.yml.in",
    "conan/conanfile.py",
    "vcpkg/portfile.cmake.in",
    "vcpkg/vcpkg.json.in",
];

pub(super) fn make(way: &Way<'_>, work: &Path, folder: &Path) -> Result<()> {
    let from = paths::root().join("marker-crate");
    let name = format!("ctrace-headers-{VERSION}");
    for file in FILES {
        put(&from.join(file), &work.join(&name).join(file), 0o644)?;
    }
    let archive = folder.join(format!("{name}.tar.gz"));
    pack(work, &name, way, &archive)?;
    let (sha256, sha512) = (sum("sha256sum", &archive)?, sum("sha512sum", &archive)?);
    let gaps =
        [("PROJECT_VERSION", VERSION), ("URL", way.url), ("SHA256", &sha256), ("SHA512", &sha512)];
    for recipe in RECIPES {
        let text = filled(&from.join("packaging").join(recipe), &gaps)?;
        let place = folder.join("recipes").join(recipe.trim_end_matches(".in"));
        write(&place, text.as_bytes(), 0o644)?;
    }
    Ok(())
}

fn sum(tool: &str, file: &Path) -> Result<String> {
    let output = progress::must(tool, Command::new(tool).arg(file))?.output;
    Ok(output.split_whitespace().next().context("a checksum")?.to_owned())
}
