//! Packs the Debian package. `dpkg-deb`, which every Debian has, writes the format; what is left is
//! a control file.

use super::tree::{self, Layout};
use super::{Programs, VERSION, Way, commit_time, put, write};
use crate::{machine, paths, progress};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

const LAYOUT: Layout = Layout { prefix: "/usr", zsh: "share/zsh/vendor-completions" };

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ctrace

Files: *
Copyright: the authors of ctrace
License: MIT or Apache-2.0
 The texts are beside this file, in LICENSE-MIT and LICENSE-APACHE. Those of the
 libraries inside the program are in LICENSES-OF-DEPENDENCIES.
";

pub(super) fn name() -> String {
    format!("ctrace_{VERSION}_amd64.deb")
}

pub(super) fn make(
    programs: &Programs,
    licences: &str,
    way: &Way<'_>,
    work: &Path,
    folder: &Path,
) -> Result<()> {
    let usr = work.join("usr");
    tree::lay_out(programs, licences, &LAYOUT, &usr)?;
    // A small package, without the checksum lists that only tools of maintainers read.
    write(&usr.join("share/doc/ctrace/copyright"), COPYRIGHT.as_bytes(), 0o644)?;
    let changelog = usr.join("share/doc/ctrace/changelog");
    put(&paths::root().join("CHANGELOG.md"), &changelog, 0o644)?;
    progress::must("compress the changelog", Command::new("gzip").arg("-9n").arg(&changelog))?;
    let control = control(&depends(programs)?, kibibytes(&usr)?);
    write(&work.join("DEBIAN/control"), control.as_bytes(), 0o644)?;
    let mut build = Command::new("dpkg-deb");
    build.env("SOURCE_DATE_EPOCH", commit_time()?).arg("--root-owner-group");
    build.args(if way.fast { ["-Zgzip", "-z1"] } else { ["-Zxz", "-z9"] });
    build.arg("--build").arg(work).arg(folder.join(name()));
    progress::must("Debian package", &mut build).map(drop)
}

fn control(depends: &str, kibibytes: u64) -> String {
    format!(
        "Package: ctrace\n\
         Version: {VERSION}\n\
         Architecture: amd64\n\
         Maintainer: the authors of ctrace\n\
         Section: devel\n\
         Priority: optional\n\
         Installed-Size: {kibibytes}\n\
         Depends: {depends}\n\
         Description: profiler of native programs, from outside\n \
         ctrace times every call of the functions that you choose in a running program,\n \
         with eBPF probes. Nothing is compiled in. It shows how often each function was\n \
         called, by which threads, how long the calls took, and what they called.\n \
         .\n \
         The package also has the headers of markers for C and C++, and a unit of\n \
         systemd for the daemon, which is not enabled.\n"
    )
}

/// The size of a tree, as Debian's control files have it.
fn kibibytes(tree: &Path) -> Result<u64> {
    let tree = tree.display().to_string();
    let output = machine::output_of("du", &["-sk", "--apparent-size", &tree]).context("du")?;
    Ok(output.split_whitespace().next().context("a size")?.parse()?)
}

fn depends(programs: &Programs) -> Result<String> {
    let names = [&programs.ctrace, &programs.store].map(|program| program.display().to_string());
    let headers = machine::output_of("objdump", &["-p", &names[0], &names[1]])
        .context("objdump (binutils) is missing, or cannot read the programs")?;
    depends_of(&headers)
}

/// The packages of the libraries that programs need, by what `objdump -p` says of them: the C library
/// in the newest version that a symbol names.
fn depends_of(headers: &str) -> Result<String> {
    let mut compilers = "";
    for line in headers.lines() {
        match line.trim().strip_prefix("NEEDED").map(str::trim) {
            None | Some("libc.so.6" | "libm.so.6" | "ld-linux-x86-64.so.2") => {}
            Some("libgcc_s.so.1") => compilers = ", libgcc-s1",
            Some(library) => bail!("which package has {library} is not known: add it here"),
        }
    }
    let newest = headers
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("GLIBC_2."))
        .filter_map(|minor| minor.split('.').next()?.parse::<u32>().ok())
        .max()
        .context("the program names no version of the C library")?;
    Ok(format!("libc6 (>= 2.{newest}){compilers}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADERS: &str = "
Dynamic Section:
  NEEDED               libgcc_s.so.1
  NEEDED               libc.so.6
Version References:
  required from libgcc_s.so.1:
    0x0b792650 0x00 12 GCC_3.0
  required from libc.so.6:
    0x09691a75 0x00 09 GLIBC_2.2.5
    0x069691b4 0x00 06 GLIBC_2.34
    0x06969189 0x00 05 GLIBC_2.9
";

    #[test]
    fn the_newest_symbol_decides_the_dependence() {
        assert_eq!(depends_of(HEADERS).expect("known libraries"), "libc6 (>= 2.34), libgcc-s1");
        let other = HEADERS.replace("libgcc_s.so.1", "libzstd.so.1");
        let error = depends_of(&other).expect_err("an unknown library").to_string();
        assert!(error.contains("libzstd.so.1"), "{error}");
    }
}
