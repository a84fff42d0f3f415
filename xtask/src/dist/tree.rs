//! Lays out what is installed below a prefix. The archive and the Debian package have the same
//! files; they differ in the prefix and in where Debian wants them.

use super::{Programs, VERSION, filled, put, write};
use crate::{machine, paths, progress, store};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// The places of files below a prefix.
pub(super) struct Layout {
    /// The prefix after installation: the unit file names the program.
    pub prefix: &'static str,
    /// The folder of completions of zsh.
    pub zsh: &'static str,
}

/// Writes the programs, the manual, completions, unit, headers and documents to `to`.
pub(super) fn lay_out(
    programs: &Programs,
    licences: &str,
    layout: &Layout,
    to: &Path,
) -> Result<()> {
    let program = &programs.ctrace;
    put(program, &to.join("bin/ctrace"), 0o755)?;
    put(&programs.store, &to.join("bin").join(store::NAME), 0o755)?;
    manual(program, &to.join("share/man/man1"))?;
    for (shell, file) in [
        ("bash", "share/bash-completion/completions/ctrace".to_owned()),
        ("zsh", format!("{}/_ctrace", layout.zsh)),
        ("fish", "share/fish/vendor_completions.d/ctrace.fish".to_owned()),
    ] {
        let program = program.display().to_string();
        let script = machine::output_of(&program, &["completions", shell])
            .with_context(|| format!("{program} completions {shell} failed"))?;
        write(&to.join(file), format!("{script}\n").as_bytes(), 0o644)?;
    }
    unit(layout.prefix, &to.join("lib/systemd/system/ctrace.service"))?;
    headers(to)?;
    documents(licences, &to.join("share/doc/ctrace"))
}

fn manual(program: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    progress::must("manual", Command::new(program).arg("man").arg(to))?;
    let pages = super::files_of(to)?;
    ensure!(!pages.is_empty(), "{} man wrote no page", program.display());
    progress::must("compress the manual", Command::new("gzip").arg("-9n").args(&pages)).map(drop)
}

/// The unit file, for a program below another prefix.
fn unit(prefix: &str, to: &Path) -> Result<()> {
    const USUAL: &str = "/usr/local/bin/ctrace";
    let text = std::fs::read_to_string(paths::root().join("docs/ctrace.service"))?;
    ensure!(text.contains(USUAL), "docs/ctrace.service does not start {USUAL}");
    write(to, text.replace(USUAL, &format!("{prefix}/bin/ctrace")).as_bytes(), 0o644)
}

/// The headers, and the files by which CMake and pkg-config find them. CMakeLists.txt installs the
/// same.
fn headers(to: &Path) -> Result<()> {
    let from = paths::root().join("marker-crate");
    for (header, place) in [
        ("ctrace.h", "include/ctrace.h"),
        ("ctrack_compat.hpp", "include/ctrace/ctrack_compat.hpp"),
        ("ctrack_print.hpp", "include/ctrace/ctrack_print.hpp"),
        ("ctrack_tables.hpp", "include/ctrace/ctrack_tables.hpp"),
        ("ctrack_types.hpp", "include/ctrace/ctrack_types.hpp"),
        ("ctrack/ctrack.hpp", "include/ctrace/ctrack/ctrack.hpp"),
    ] {
        put(&from.join("include").join(header), &to.join(place), 0o644)?;
    }
    let packaging = from.join("packaging");
    for (file, folder) in
        [("ctrace.pc", "share/pkgconfig"), ("ctrace-config-version.cmake", "share/cmake/ctrace")]
    {
        let text = filled(&packaging.join(format!("{file}.in")), &[("PROJECT_VERSION", VERSION)])?;
        write(&to.join(folder).join(file), text.as_bytes(), 0o644)?;
    }
    let config = "ctrace-config.cmake";
    put(&packaging.join(config), &to.join("share/cmake/ctrace").join(config), 0o644)
}

/// The documents: those that the README links lie where it says.
fn documents(licences: &str, to: &Path) -> Result<()> {
    let root = paths::root();
    for name in ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        put(&root.join(name), &to.join(name), 0o644)?;
    }
    for file in super::files_of(&root.join("docs"))? {
        let name = file.file_name().context("a file has a name")?;
        put(&file, &to.join("docs").join(name), 0o644)?;
    }
    write(&to.join("LICENSES-OF-DEPENDENCIES"), licences.as_bytes(), 0o644)
}
