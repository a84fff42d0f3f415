//! Gathers the licence texts of the crates inside the programs: whoever passes on the binaries must
//! pass these on too.

use crate::{paths, store};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Returns each text once, under the crates that have it.
pub(super) fn text() -> Result<String> {
    let mut licences = BTreeMap::new();
    let mut crates_by_text: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (program, manifest) in [("ctrace", "Cargo.toml"), (store::NAME, store::MANIFEST)] {
        let linked = linked(program, manifest)?;
        // Crates of other systems need not be there.
        let only = ["--filter-platform", "x86_64-unknown-linux-gnu"];
        let options = ["metadata", "--format-version", "1", "--locked"];
        let metadata = output(&[&options[..], &only].concat(), manifest)?;
        let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata")?;
        for package in metadata["packages"].as_array().context("packages")? {
            let name = format!("{} {}", text_of(package, "name")?, text_of(package, "version")?);
            if package["source"].is_null() || !linked.contains(&name) {
                continue;
            }
            let licence = package["license"].as_str().unwrap_or("see its files");
            licences.insert(name.clone(), licence.to_owned());
            let manifest = Path::new(text_of(package, "manifest_path")?);
            for text in licence_files(manifest.parent().context("a folder")?)? {
                crates_by_text.entry(text).or_default().insert(name.clone());
            }
        }
    }
    let mut all =
        String::from("ctrace and ctrace-store contain these crates, under these licences:\n\n");
    for (name, licence) in licences {
        let _ = writeln!(all, "{name}: {licence}");
    }
    for (text, crates) in crates_by_text {
        let crates: Vec<String> = crates.into_iter().collect();
        let _ = write!(all, "\n{:=<80}\n{}\n{:-<80}\n{}\n", "", crates.join("\n"), "", text.trim());
    }
    Ok(all)
}

/// The crates that are linked into a program, as "name version".
fn linked(program: &str, manifest: &str) -> Result<BTreeSet<String>> {
    let tree = ["tree", "--package", program, "--edges", "normal", "--prefix", "none", "--locked"];
    let tree = output(&[&tree[..], &["--format", "{p}"]].concat(), manifest)?;
    let crates = tree.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
    });
    Ok(crates.collect())
}

fn licence_files(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for file in super::files_of(folder)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|it| name.starts_with(it))
        {
            texts.push(String::from_utf8_lossy(&std::fs::read(file)?).into_owned());
        }
    }
    Ok(texts)
}

fn text_of<'a>(package: &'a Value, key: &str) -> Result<&'a str> {
    package[key].as_str().with_context(|| format!("cargo metadata: {key}"))
}

fn output(arguments: &[&str], manifest: &str) -> Result<String> {
    let output = paths::cargo().args(arguments).args(["--manifest-path", manifest]).output()?;
    if !output.status.success() {
        bail!("cargo {}: {}", arguments[0], String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}
