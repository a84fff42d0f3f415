//! Finds separate debug files of stripped programs, by build-id and by `.gnu_debuglink`.
//!
//! The wrong file would give names to the wrong addresses. So a file is taken only if its build-id
//! matches or, where there is none, its checksum.

use super::mini_debug;
use crate::target::elf::{ElfError, ElfLayout};
use crate::target::process::{has_own_root, proc_path};
use crate::target::read::budget::{Budget, TooLarge};
use crate::target::read::regular::open_regular;
use crate::target::read::source::Source;
use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of the search for a debug file.
#[derive(Debug, Default)]
pub(crate) struct DebugFile {
    found: Option<(PathBuf, Source)>,
    /// The paths that were tried, and why existing files were rejected.
    pub looked_at: Vec<(PathBuf, Rejected)>,
}

/// The reason why a path is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    Absent,
    Unreadable,
    /// Not an ELF file of our machine, or one without symbols.
    NoDebugFile,
    /// Build-id or checksum of another object.
    OtherObject,
    TooLarge(TooLarge),
}

impl DebugFile {
    pub(crate) fn path(&self) -> Option<&Path> {
        self.found.as_ref().map(|(path, _)| path.as_path())
    }

    pub(crate) fn source(&self) -> Option<&Source> {
        self.found.as_ref().map(|(_, source)| source)
    }
}

/// Looks for the debug file of the object with this layout, shown as `display`, opened as `open`. Where there is
/// none, the object may contain one. It draws from the object's budget.
pub(crate) fn find(object: &Source, layout: &ElfLayout, display: &Path, open: &Path) -> DebugFile {
    let mut result = DebugFile::default();
    for path in candidates(layout, display, open) {
        if result.looked_at.iter().any(|(seen, _)| *seen == path) {
            continue;
        }
        match take(layout, &path, object.budget()) {
            Ok(source) => {
                result.found = Some((path, source));
                break;
            }
            Err(reason) => result.looked_at.push((path, reason)),
        }
    }
    if result.found.is_none() {
        result.found =
            mini_debug::unpack(object, layout).map(|mini| (mini_debug::SECTION.into(), mini));
    }
    result
}

fn candidates(layout: &ElfLayout, display: &Path, open: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let display = std::path::absolute(display).unwrap_or_else(|_| display.to_owned());
    let relative = |path: &Path| path.strip_prefix("/").unwrap_or(path).to_owned();
    for root in roots(open) {
        let global = root.join("usr/lib/debug");
        if let Some((first, rest)) = layout.build_id.as_deref().and_then(|id| id.split_first())
            && !rest.is_empty()
        {
            let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
            paths.push(global.join(format!(".build-id/{first:02x}/{rest}.debug")));
        }
        let Some((name, _)) = &layout.debug_link else { continue };
        let name = Path::new(OsStr::from_bytes(name));
        // A link is a bare file name. One with directories could lead anywhere.
        if name.file_name() != Some(name.as_os_str()) {
            continue;
        }
        let given = display.parent().unwrap_or(Path::new("/"));
        // Mapped files have their real names. A link in a container may lead out of it.
        let ours = root == Path::new("/");
        let real = ours.then(|| root.join(relative(&display)).canonicalize().ok()).flatten();
        let real = real.as_deref().and_then(Path::parent).map(Path::to_owned);
        let places = [Some(root.join(relative(given))), real];
        for directory in places.into_iter().flatten() {
            paths.push(directory.join(name));
            paths.push(directory.join(".debug").join(name));
            let inside = directory.strip_prefix(&root).unwrap_or(&directory);
            paths.push(global.join(relative(inside)).join(name));
        }
    }
    paths
}

/// Lists the file systems to search: the process's own root, if it has one, and ours.
fn roots(open: &Path) -> Vec<PathBuf> {
    let mut roots = Vec::new();
    let pid = open.strip_prefix("/proc").ok().and_then(|rest| rest.iter().next()?.to_str());
    if let Some(pid) = pid.and_then(|pid| pid.parse().ok())
        && has_own_root(pid)
    {
        roots.push(proc_path(pid, "root"));
    }
    roots.push(PathBuf::from("/"));
    roots
}

fn take(layout: &ElfLayout, path: &Path, budget: &Arc<Budget>) -> Result<Source, Rejected> {
    let file = match open_regular(path) {
        Ok(Some(file)) => file,
        Ok(None) => return Err(Rejected::Absent),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Rejected::Absent),
        Err(_) => return Err(Rejected::Unreadable),
    };
    let source = Source::of_file(file, Arc::clone(budget)).map_err(|_| Rejected::Unreadable)?;
    let debug = ElfLayout::parse(&source, true).map_err(|error| match error {
        ElfError::TooLarge(why) => Rejected::TooLarge(why),
        _ => Rejected::NoDebugFile,
    })?;
    if !debug.sections.iter().any(|section| {
        section.in_file
            && [".symtab", ".debug_info", ".debug_line"].contains(&section.name.as_str())
    }) {
        return Err(Rejected::NoDebugFile);
    }
    let proved = match (&layout.build_id, &debug.build_id, &layout.debug_link) {
        (Some(ours), Some(theirs), _) => ours == theirs,
        (.., Some((_, expected))) => checksum(&source)? == *expected,
        _ => false,
    };
    if proved { Ok(source) } else { Err(Rejected::OtherObject) }
}

/// Computes the checksum of the whole file.
fn checksum(source: &Source) -> Result<u32, Rejected> {
    let mut hasher = crc32fast::Hasher::new();
    let scan = || {
        source.scan(0..source.length(), 0, |_, chunk| {
            hasher.update(chunk);
            ControlFlow::Continue(())
        })
    };
    match source.budget().watch(scan) {
        (Ok(()), _) => Ok(hasher.finalize()),
        (Err(_), refused) => Err(refused.map_or(Rejected::Unreadable, Rejected::TooLarge)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::fixtures::{Built, compile};
    use std::fs;

    const SOURCE: &str = "__attribute__((noinline)) int helper(int x) { return x * 7; }\n\
                          int main(int c, char **v) { return helper(c); }\n";

    /// A stripped program, its debug file beside it as `program.debug`.
    fn stripped(id: &str) -> Built {
        let built = compile(&format!("gcc -g -Wl,--build-id={id}"), "c", SOURCE);
        built.run("objcopy --only-keep-debug program program.debug");
        built.run("objcopy --strip-all --add-gnu-debuglink=program.debug program");
        built
    }

    fn helper_line(built: &Built) -> Option<Option<u32>> {
        let object = built.object();
        assert!(object.is_stripped());
        let helper = object.functions().iter().find(|function| function.raw() == "helper")?;
        Some(object.source_line(helper.address).and_then(|source| source.line))
    }

    #[test]
    fn by_link() {
        for id in ["sha1", "none"] {
            let built = stripped(id);
            assert_eq!(helper_line(&built), Some(Some(1)), "{id}");
            built.run("mkdir .debug");
            built.run("mv program.debug .debug");
            assert_eq!(helper_line(&built), Some(Some(1)), "{id}");
            built.run("rm .debug/program.debug");
            assert_eq!(helper_line(&built), None, "{id}");
        }
    }

    #[test]
    fn not_that_of_another_build() {
        for id in ["sha1", "none"] {
            let built = stripped(id);
            let other = compile(&format!("gcc -g -O2 -Wl,--build-id={id}"), "c", SOURCE);
            let file = built.dir().join("program.debug");
            fs::copy(&other.program, &file).unwrap();
            let object = built.object();
            let rejected = object.debug_file().looked_at.iter().find(|(path, _)| *path == file);
            assert_eq!(rejected.unwrap().1, Rejected::OtherObject, "{id}");
            fs::write(&file, "no ELF").unwrap();
            assert_eq!(helper_line(&built), None);
        }
    }

    #[test]
    fn names_the_places() {
        let layout = ElfLayout {
            build_id: Some(vec![0xab, 0xcd, 0xef]),
            debug_link: Some((b"tool.debug".to_vec(), 0)),
            ..ElfLayout::default()
        };
        let check = |link: &[u8], expected: &[&str]| {
            let layout = ElfLayout { debug_link: Some((link.to_vec(), 0)), ..layout.clone() };
            let path = Path::new("/nowhere/bin/tool");
            let paths = candidates(&layout, path, path);
            let paths: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
            assert_eq!(paths, expected);
        };
        check(
            b"tool.debug",
            &[
                "/usr/lib/debug/.build-id/ab/cdef.debug",
                "/nowhere/bin/tool.debug",
                "/nowhere/bin/.debug/tool.debug",
                "/usr/lib/debug/nowhere/bin/tool.debug",
            ],
        );
        check(b"../../etc/passwd", &["/usr/lib/debug/.build-id/ab/cdef.debug"]);
        check(b"", &["/usr/lib/debug/.build-id/ab/cdef.debug"]);
    }
}
