//! Writes to a file that a program has made for an answer: memory without a name (memfd).
//!
//! The program says the number of its descriptor, and may say any. Other files must be left alone: to open
//! one, to ask for its size or to close it can wait for whoever serves it. So the file is found without being
//! opened, and opened only if it lies where the kernel keeps such memory. A write could wait for the
//! program as well, which can hold the file's lock. So ctrace maps the file, and writes through
//! /proc/self/mem: where the kernel has no memory, that fails, while a store would end ctrace.

use super::sys::Mapping;
use ctrace_core::units::Pid;
use rustix::{
    fs::{
        MemfdFlags, Mode, OFlags, SealFlags, SeekFrom, fcntl_get_seals, memfd_create, open, seek,
    },
    io::Errno,
};
use std::{
    fs::File,
    io,
    ops::RangeInclusive,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::FileExt as _,
    },
};

/// A file that cannot shrink, and is mapped here.
pub(crate) struct AnswerFile {
    mapping: Mapping,
    own_memory: File,
}

impl AnswerFile {
    /// Opens a process's file of such a size. Returns `None` for any other file, or none.
    pub(crate) fn open(
        pid: Pid,
        number: u64,
        sizes: RangeInclusive<u64>,
    ) -> io::Result<Option<Self>> {
        let unopened = OFlags::PATH | OFlags::CLOEXEC;
        let found = match open(format!("/proc/{}/fd/{number}", pid.0), unopened, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            found => found?,
        };
        let ours = memfd_create("", MemfdFlags::CLOEXEC)?;
        if mount_of(&found)? != mount_of(&ours)? {
            return Ok(None);
        }
        // Nonblocking: a file's owner can hold a lease on it.
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = open(format!("/proc/self/fd/{}", found.as_raw_fd()), flags, Mode::empty())?;
        if !is_for_writing(pid, number)? {
            return Ok(None);
        }
        if !fcntl_get_seals(&file)?.contains(SealFlags::SHRINK) {
            return Ok(None);
        }
        let len = seek(&file, SeekFrom::End(0))?;
        if !sizes.contains(&len) {
            return Ok(None);
        }
        let mapping = Mapping::new(file.as_raw_fd(), len as usize, 0)?;
        let own_memory = File::options().read(true).write(true).open("/proc/self/mem")?;
        Ok(Some(Self { mapping, own_memory }))
    }

    /// Returns the number of its bytes.
    pub(crate) fn len(&self) -> usize {
        self.mapping.len()
    }

    /// Reads the bytes from its beginning on. It has at least as many.
    pub(crate) fn read<const SIZE: usize>(&self) -> io::Result<[u8; SIZE]> {
        let mut bytes = [0; SIZE];
        self.own_memory.read_exact_at(&mut bytes, self.place(0, SIZE)?)?;
        Ok(bytes)
    }

    pub(crate) fn write(&self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.own_memory.write_all_at(bytes, self.place(at, bytes.len())?)
    }

    /// Returns the address of so many bytes, which are all in the file.
    fn place(&self, at: usize, len: usize) -> io::Result<u64> {
        let is_inside = at.checked_add(len).is_some_and(|end| end <= self.len());
        let outside = || io::Error::from(io::ErrorKind::InvalidInput);
        is_inside.then(|| self.mapping.address() as u64 + at as u64).ok_or_else(outside)
    }
}

/// Returns whether the process itself may read and write by this descriptor.
fn is_for_writing(pid: Pid, number: u64) -> io::Result<bool> {
    let flags = told(&format!("/proc/{}/fdinfo/{number}", pid.0), "flags:")?;
    let flags = u32::from_str_radix(&flags, 8).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(OFlags::from_bits_retain(flags) & OFlags::RWMODE == OFlags::RDWR)
}

/// Returns the id of the mount where a file is, without asking the file.
fn mount_of(file: &OwnedFd) -> io::Result<String> {
    told(&format!("/proc/self/fdinfo/{}", file.as_raw_fd()), "mnt_id:")
}

/// Returns what the kernel tells of a descriptor under this name.
fn told(fdinfo: &str, name: &str) -> io::Result<String> {
    let about = std::fs::read_to_string(fdinfo)?;
    let value = about.lines().find_map(|line| line.strip_prefix(name));
    value.map(|value| value.trim().to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{fcntl_add_seals, ftruncate};
    use std::os::fd::AsFd;

    fn memory(len: u64, seals: SealFlags) -> OwnedFd {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("answer", flags).expect("made");
        ftruncate(&file, len).expect("large enough");
        fcntl_add_seals(&file, seals).expect("sealed");
        file
    }

    fn opened(file: impl AsFd) -> io::Result<Option<AnswerFile>> {
        let number = file.as_fd().as_raw_fd() as u64;
        AnswerFile::open(Pid(std::process::id()), number, 4096..=8192)
    }

    #[test]
    fn what_is_written_is_in_the_file_and_nowhere_else() {
        let file = memory(8000, SealFlags::SHRINK);
        let answer = opened(&file).expect("opens").expect("it is one");
        answer.write(64, b"an answer").expect("written");
        let file = File::from(file);
        let mut bytes = [0; 9];
        file.read_exact_at(&mut bytes, 64).expect("read");
        assert_eq!(&bytes, b"an answer");
        file.write_all_at(b"asked", 0).expect("written");
        assert_eq!(&answer.read::<5>().expect("read"), b"asked");
        for at in [7992, 8000, usize::MAX] {
            assert!(answer.write(at, b"an answer").is_err(), "{at}");
        }
        assert_eq!(file.metadata().expect("known").len(), 8000);
    }

    #[test]
    fn other_files_are_left_alone() {
        let none = |file: &dyn AsFd| match opened(file.as_fd()) {
            Ok(None) => {}
            Ok(Some(_)) => panic!("it was opened"),
            Err(error) => panic!("{error}"),
        };
        none(&memory(8192, SealFlags::GROW));
        none(&memory(4095, SealFlags::SHRINK));
        none(&memory(8193, SealFlags::SHRINK));
        let whole = memory(8192, SealFlags::SHRINK);
        let read_only = format!("/proc/self/fd/{}", whole.as_raw_fd());
        none(&File::open(read_only).expect("opened for reading"));
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("file");
        std::fs::write(&path, [7; 8192]).expect("written");
        none(&File::open(&path).expect("it is there"));
        none(&io::pipe().expect("made").0);
        none(&std::os::unix::net::UnixStream::pair().expect("made").0);
        assert_eq!(std::fs::read(&path).expect("read"), [7; 8192]);
        for absent in [u64::MAX, i32::MAX as u64] {
            let pid = Pid(std::process::id());
            assert!(AnswerFile::open(pid, absent, 4096..=8192).expect("none").is_none());
        }
    }

    /// Nobody can write to it, whatever the program says.
    #[test]
    fn a_file_that_is_sealed_against_writes_is_refused() {
        let file = memory(8192, SealFlags::SHRINK | SealFlags::WRITE);
        assert!(opened(&file).is_err());
    }
}
