//! Archives for initramfs images (cpio, `newc`): each directory is there once, and before its files.

use cpio::newc::{self, Builder};
use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::Path;

/// An archive in memory.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    directories: BTreeSet<String>,
    entries: u32,
}

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

impl Archive {
    /// Adds a directory and its parents.
    pub(super) fn directory(&mut self, path: &str) -> io::Result<()> {
        let path = path.trim_matches('/');
        if path.is_empty() || self.directories.contains(path) {
            return Ok(());
        }
        if let Some(parent) = Path::new(path).parent().and_then(Path::to_str) {
            self.directory(parent)?;
        }
        self.directories.insert(path.into());
        self.entry(Builder::new(path).mode(DIRECTORY).nlink(2), &[])
    }

    /// Adds an executable file.
    pub(super) fn program(&mut self, path: &str, content: &[u8]) -> io::Result<()> {
        let path = path.trim_matches('/');
        if let Some(parent) = Path::new(path).parent().and_then(Path::to_str) {
            self.directory(parent)?;
        }
        self.entry(Builder::new(path).mode(PROGRAM), content)
    }

    /// Returns the finished image.
    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        newc::trailer(self.bytes)
    }

    fn entry(&mut self, entry: Builder, content: &[u8]) -> io::Result<()> {
        self.entries += 1;
        let size = u32::try_from(content.len()).map_err(io::Error::other)?;
        let mut writer = entry.ino(self.entries).write(&mut self.bytes, size);
        writer.write_all(content)?;
        writer.finish().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_before_their_files_and_once() {
        let mut archive = Archive::default();
        archive.program("/lib/x86_64-linux-gnu/libc.so.6", b"elf").unwrap();
        archive.program("/lib/ld.so", b"elf").unwrap();
        let bytes = archive.finish().unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let at = |name: &str| text.find(name).expect(name);
        assert!(at("lib\0") < at("lib/x86_64-linux-gnu\0"));
        assert!(at("lib/x86_64-linux-gnu\0") < at("lib/x86_64-linux-gnu/libc.so.6\0"));
        assert_eq!(text.matches("070701").count(), 5);
        assert_eq!(bytes.len() % 4, 0);
    }
}
