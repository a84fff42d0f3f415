//! Finds the constants of a build of glibc's loader: its directories and its version.
//!
//! They differ between distributions, and the loader states them only in its file. So they are
//! searched there. A file without them counts as a common build.

use super::budget::{SearchBudget, TooMuch};
use regex::bytes::Regex;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::LazyLock;

/// The constants of a loader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Build {
    /// The second number of glibc's version.
    pub(super) version: u32,
    /// Each ends with a slash.
    pub(super) directories: Vec<Vec<u8>>,
    pub(super) cache: Vec<u8>,
    /// The file that names libraries to load into every program.
    pub(super) preload: Vec<u8>,
}

impl Default for Build {
    fn default() -> Self {
        Self::find(&[])
    }
}

/// More bytes than any loader has, with all its debug information.
const LONGEST: usize = 8 << 20;

impl Build {
    pub(super) fn read(file: &File, budget: &mut SearchBudget) -> Result<Self, TooMuch> {
        let length = file.metadata().map_or(0, |meta| meta.len());
        let length = usize::try_from(length).unwrap_or(LONGEST).min(LONGEST);
        Ok(Self::find(&budget.read(file, 0, length)?))
    }

    fn find(bytes: &[u8]) -> Self {
        let path = |found: &Regex, default: &str| {
            let found = found.captures(bytes).and_then(|found| found.get(1));
            found.map_or(default.as_bytes(), |found| found.as_bytes()).to_vec()
        };
        let version = VERSION.captures(bytes).and_then(|found| found.get(1));
        let version = version.and_then(|found| str::from_utf8(found.as_bytes()).ok()?.parse().ok());
        let directories = DIRECTORIES.find(bytes).map_or(COMMON, |found| found.as_bytes());
        let directories = directories.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Self {
            version: version.unwrap_or(u32::MAX),
            directories: directories.map(<[u8]>::to_vec).collect(),
            cache: path(&CACHE, "/etc/ld.so.cache"),
            preload: path(&PRELOAD, "/etc/ld.so.preload"),
        }
    }

    /// Returns `$LIB`: the default directory from its last part that is a kind of `lib`.
    pub(super) fn lib(&self) -> &[u8] {
        let first = self.directories.first().map_or(&b"/lib/"[..], Vec::as_slice);
        let inside = first.strip_suffix(b"/").unwrap_or(first);
        let at = memchr::memmem::rfind(inside, b"/lib").map_or(0, |at| at + 1);
        &inside[at..]
    }

    /// Returns whether a path is in a default directory.
    pub(super) fn is_default(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.directories.iter().any(|directory| path.starts_with(directory))
    }
}

const COMMON: &[u8] = b"/lib/x86_64-linux-gnu/\0/usr/lib/x86_64-linux-gnu/\0/lib64/\0/usr/lib64/\0\
                        /lib/\0/usr/lib/\0";

/// Matches paths with a part that begins with `lib`, each up to its slash, in sequence.
static DIRECTORIES: LazyLock<Regex> =
    LazyLock::new(|| of(r"(?-u)(?:/(?:[!-.0-~]+/)*lib[!-.0-~]*/(?:[!-.0-~]+/)*\x00)+"));
static CACHE: LazyLock<Regex> = LazyLock::new(|| of(r"(?-u)(/[!-~]*/ld\.so\.cache)\x00"));
static PRELOAD: LazyLock<Regex> =
    LazyLock::new(|| of(r"(?-u)(/[!-~]*/ld[a-z-]*\.so\.preload)\x00"));
static VERSION: LazyLock<Regex> = LazyLock::new(|| of(r"(?-u)release version 2\.([0-9]{1,3})"));

fn of(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is well formed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(paths: &[Vec<u8>]) -> Vec<&str> {
        paths.iter().map(|path| str::from_utf8(path).unwrap()).collect()
    }

    #[test]
    fn finds_constants() {
        let debian =
            b"\x80\x01/lib/x86_64-linux-gnu/\0/usr/lib/x86_64-linux-gnu/\0/lib/\0/usr/lib/\0\0\
            \0/etc/ld.so.cache\0 search /etc/ld.so.cache\n\0\0/etc/ld.so.preload\0\
            ld.so (Debian GLIBC 2.36-9) stable release version 2.36.\nCopyright";
        let build = Build::find(debian);
        assert_eq!(
            texts(&build.directories),
            ["/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/", "/lib/", "/usr/lib/"]
        );
        assert_eq!((build.version, build.lib()), (36, &b"lib/x86_64-linux-gnu"[..]));
        assert_eq!(
            (&build.cache[..], &build.preload[..]),
            (&b"/etc/ld.so.cache"[..], &b"/etc/ld.so.preload"[..])
        );

        let nix = b"/tmp/\0/nix/store/abc-glibc-2.40/lib/\0\0\0/nix/store/abc-glibc-2.40/etc/ld.so.cache\0\
            /etc/ld-nix.so.preload\0stable release version 2.40.";
        let build = Build::find(nix);
        assert_eq!(texts(&build.directories), ["/nix/store/abc-glibc-2.40/lib/"]);
        assert_eq!((build.version, build.lib()), (40, &b"lib"[..]));
        assert_eq!(build.cache, b"/nix/store/abc-glibc-2.40/etc/ld.so.cache");
        assert_eq!(build.preload, b"/etc/ld-nix.so.preload");

        let fedora = Build::find(b"\0/lib64/\0/usr/lib64/\0");
        assert_eq!((fedora.directories.len(), fedora.lib()), (2, &b"lib64"[..]));
        assert!(fedora.is_default(Path::new("/usr/lib64/libc.so.6")));
        assert!(!fedora.is_default(Path::new("/usr/lib/libc.so.6")));
    }

    #[test]
    fn a_loader_without_them_is_taken_for_a_common_one() {
        let build = Build::find(b"nothing of use");
        assert_eq!((build.directories.len(), build.version), (6, u32::MAX));
        assert_eq!(build.cache, b"/etc/ld.so.cache");
    }
}
