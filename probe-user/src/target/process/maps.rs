//! Reads a process's mappings: its executable files by inode, and the memory of its stacks.
//!
//! The inode is the identity, because a uprobe attaches to it. It comes from stat: on overlay and
//! btrfs, /proc/PID/maps gives another device for the same file. A path in /proc/PID/maps may by
//! now name another file, or one in another container. The path to open never does.

use super::patience::{self, GivenUp};
use super::{has_own_root, proc_path};
use ctrace_core::units::Pid;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, str, thread};

/// The reason why the memory map could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MapsError {
    #[error(
        "process {pid} ended while ctrace looked at its memory map; start it again and attach earlier"
    )]
    Ended { pid: u32 },
    #[error(
        "cannot read the memory map of process {pid}: {error}; run ctrace with sudo (CAP_SYS_PTRACE)"
    )]
    Io { pid: u32, error: io::Error },
    #[error(
        "cannot read the memory map of process {pid}: {error}; look at what it waits for (`cat /proc/{pid}/stack`)"
    )]
    Stuck { pid: u32, error: GivenUp },
}

/// An executable file in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedObject {
    /// The path to show: the name that the process used.
    pub path: PathBuf,
    /// A path that opens this very file, even when it is deleted, replaced or in a container.
    pub open_path: PathBuf,
    /// The file's name without its directory.
    pub name: String,
    pub is_main: bool,
    /// True if the path no longer names this file.
    pub is_deleted: bool,
    pub dev: u64,
    pub inode: u64,
    /// The process, unless the program does not run yet.
    pub(crate) pid: Option<Pid>,
    /// Its executable mappings. Empty for a program that does not run yet.
    pub(crate) code: Vec<CodeMapping>,
}

impl MappedObject {
    /// Makes an object of a plain file, for a program that does not run yet.
    pub(crate) fn from_file(path: &Path, is_main: bool) -> io::Result<Self> {
        let (dev, inode) = stat(path)?;
        Ok(Self {
            path: path.to_owned(),
            open_path: path.to_owned(),
            name: file_name(path),
            is_main,
            is_deleted: false,
            dev,
            inode,
            pid: None,
            code: Vec::new(),
        })
    }

    /// Returns a path that opens this file now. The one through its process ends with the process.
    pub(crate) fn path_now(&self) -> &Path {
        let is_named = || stat(&self.path).is_ok_and(|it| it == (self.dev, self.inode));
        if !self.open_path.exists() && is_named() { &self.path } else { &self.open_path }
    }
}

/// A stretch of a file that is mapped executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeMapping {
    pub addresses: Range<u64>,
    /// Offset in the file of the first address.
    pub offset: u64,
}

/// Memory that can hold a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub addresses: Range<u64>,
    /// `[stack]`, `[heap]`, or empty for a nameless mapping.
    pub name: String,
}

/// One line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    addresses: Range<u64>,
    readable: bool,
    writable: bool,
    executable: bool,
    offset: u64,
    dev: u64,
    inode: u64,
    path: OsString,
}

/// Returns the executable files of a process, the main executable first.
pub(crate) fn objects(pid: u32) -> Result<Vec<MappedObject>, MapsError> {
    // During an exec, a process has its new program but has not mapped it yet.
    const PATIENCE: u32 = 50;
    const LONGEST: Duration = Duration::from_millis(200);
    let begun = Instant::now();
    for _ in 0..PATIENCE {
        let objects = look(pid)?;
        // A process that unmapped its program and maps much else is looked at once.
        if objects.iter().any(|object| object.is_main) || begun.elapsed() > LONGEST {
            return Ok(objects);
        }
        thread::sleep(Duration::from_millis(1));
    }
    look(pid)
}

fn look(pid: u32) -> Result<Vec<MappedObject>, MapsError> {
    let lines = read(pid)?;
    let exe_path = proc_path(pid, "exe");
    let exe = Exe {
        identity: stat(&exe_path).ok(),
        link: fs::read_link(&exe_path).unwrap_or_default().into_os_string(),
        path: exe_path,
    };
    let own_root = has_own_root(pid);
    // Grouping by the map's entries lets us stat each file once.
    let (mut found, mut places) = (Vec::<MappedObject>::new(), HashMap::new());
    for line in lines.iter().filter(|line| line.executable && line.inode != 0) {
        let code = CodeMapping { addresses: line.addresses.clone(), offset: line.offset };
        let key = (line.dev, line.inode);
        match places.get(&key).and_then(|place: &usize| found.get_mut(*place)) {
            Some(object) => object.code.push(code),
            None => {
                places.insert(key, found.len());
                found.push(object(pid, line, code, &exe, own_root));
            }
        }
    }
    // Without the right to stat the mapped file, the path decides.
    if !found.iter().any(|object| object.is_main) {
        let link = without_deleted(Path::new(&exe.link)).0;
        if let Some(object) = found.iter_mut().find(|object| object.path == link) {
            object.is_main = true;
        }
    }
    found.sort_by_key(|object| !object.is_main);
    Ok(found)
}

struct Exe {
    path: PathBuf,
    link: OsString,
    identity: Option<(u64, u64)>,
}

fn object(pid: u32, line: &Line, code: CodeMapping, exe: &Exe, own_root: bool) -> MappedObject {
    let is_exe = exe.identity == Some((line.dev, line.inode));
    let (path, marked_deleted) = without_deleted(Path::new(&line.path));
    let in_root = if own_root { rooted(pid, &path) } else { path.clone() };
    let same = |candidate: &Path| stat(candidate).is_ok_and(|it| it == (line.dev, line.inode));
    let is_deleted = marked_deleted || !in_root.exists();
    let Range { start, end } = line.addresses;
    let link = proc_path(pid, &format!("map_files/{start:x}-{end:x}"));
    // map_files needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN; the others do not.
    let open_path = if fs::metadata(&link).is_ok() {
        link
    } else if is_exe {
        exe.path.clone()
    } else {
        // An unproven path is better than none: opening it will tell, and the build-id shows.
        [in_root.clone(), rooted(pid, &path)].into_iter().find(|c| same(c)).unwrap_or(in_root)
    };
    // Probes go to the file that will be opened, so that file's inode counts.
    let (dev, inode) = stat(&open_path).unwrap_or((line.dev, line.inode));
    MappedObject {
        name: file_name(&path),
        path,
        open_path,
        is_main: is_exe || exe.identity == Some((dev, inode)),
        is_deleted,
        dev,
        inode,
        pid: Some(Pid(pid)),
        code: vec![code],
    }
}

/// Returns the device and inode of a file.
fn stat(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|meta| (meta.dev(), meta.ino()))
}

/// Returns the path as seen from our own root.
fn rooted(pid: u32, path: &Path) -> PathBuf {
    proc_path(pid, "root").join(path.strip_prefix("/").unwrap_or(path))
}

/// Returns the regions that can hold a stack: writable memory without a file.
pub(super) fn stack_regions(pid: u32) -> Result<Vec<Region>, MapsError> {
    Ok(regions(&read(pid)?))
}

fn regions(lines: &[Line]) -> Vec<Region> {
    lines
        .iter()
        .filter(|line| line.readable && line.writable && line.inode == 0)
        .map(|line| Region {
            addresses: line.addresses.clone(),
            name: line.path.to_string_lossy().into_owned(),
        })
        .collect()
}

/// Returns whether a process maps one of these inodes as code.
pub(crate) fn maps_code_of(pid: u32, inodes: &HashSet<u64>) -> bool {
    let is_one = |line: &Line| line.executable && inodes.contains(&line.inode);
    read(pid).is_ok_and(|lines| lines.iter().any(is_one))
}

/// Returns the file's name for people and for `@OBJECT`.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Removes the kernel's mark of a deleted file. A file's real name may also end so.
pub(super) fn without_deleted(path: &Path) -> (PathBuf, bool) {
    const MARK: &[u8] = b" (deleted)";
    match path.as_os_str().as_bytes().strip_suffix(MARK) {
        Some(bare) if !path.exists() => (PathBuf::from(OsStr::from_bytes(bare)), true),
        _ => (path.to_owned(), false),
    }
}

/// Bytes of half a million mappings: eight times the kernel's default limit.
const MOST_OF_MAPS: u64 = 64 << 20;

fn read(pid: u32) -> Result<Vec<Line>, MapsError> {
    const ESRCH: i32 = 3;
    let read = patience::within(Pid(pid), move || {
        let mut bytes = Vec::new();
        let file = fs::File::open(proc_path(pid, "maps"))?;
        file.take(MOST_OF_MAPS).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    });
    let read = read.map_err(|error| MapsError::Stuck { pid, error })?;
    let bytes = read.map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ESRCH) {
            MapsError::Ended { pid }
        } else {
            MapsError::Io { pid, error }
        }
    })?;
    // A process that has given up its memory has an empty map.
    if bytes.is_empty() {
        return Err(MapsError::Ended { pid });
    }
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(parse_line).collect())
}

fn parse_line(line: &[u8]) -> Option<Line> {
    let mut rest = line;
    let mut field = || {
        let start = rest.iter().position(|byte| *byte != b' ')?;
        let tail = &rest[start..];
        let end = tail.iter().position(|byte| *byte == b' ').unwrap_or(tail.len());
        rest = &tail[end..];
        str::from_utf8(&tail[..end]).ok()
    };
    let (start, end) = field()?.split_once('-')?;
    let flags = field()?.as_bytes();
    let offset = field()?;
    let (major, minor) = field()?.split_once(':')?;
    let inode = field()?;
    let path = rest.iter().position(|byte| *byte != b' ').map_or(&[][..], |at| &rest[at..]);
    Some(Line {
        addresses: hex(start)?..hex(end)?,
        readable: flags.first() == Some(&b'r'),
        writable: flags.get(1) == Some(&b'w'),
        executable: flags.get(2) == Some(&b'x'),
        offset: hex(offset)?,
        dev: rustix::fs::makedev(hex(major)?.try_into().ok()?, hex(minor)?.try_into().ok()?),
        inode: inode.parse().ok()?,
        path: unescape(path),
    })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// Undoes the kernel's only escape in paths: `\012` for a newline.
fn unescape(path: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((byte, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(b"\\012") {
            bytes.push(b'\n');
            rest = tail;
        } else {
            bytes.push(*byte);
            rest = tail;
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
#[path = "maps_tests.rs"]
mod tests;
