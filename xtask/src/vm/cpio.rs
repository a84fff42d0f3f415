//! Writes the archive format of initramfs images (cpio, `newc`).

use std::collections::BTreeSet;
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
    pub(super) fn directory(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || self.directories.contains(path) {
            return;
        }
        if let Some(parent) = Path::new(path).parent().and_then(Path::to_str) {
            self.directory(parent);
        }
        self.directories.insert(path.into());
        self.entry(path, DIRECTORY, &[]);
    }

    /// Adds an executable file.
    pub(super) fn program(&mut self, path: &str, content: &[u8]) {
        let path = path.trim_matches('/');
        if let Some(parent) = Path::new(path).parent().and_then(Path::to_str) {
            self.directory(parent);
        }
        self.entry(path, PROGRAM, content);
    }

    /// Returns the finished image.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let links = if mode == DIRECTORY { 2 } else { 1 };
        self.bytes.extend_from_slice(b"070701");
        // inode, mode, uid, gid, links, time, size, device (4 numbers), length of the name, check.
        let size = content.len() as u32;
        let name_size = name.len() as u32 + 1;
        for number in [self.entries, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0] {
            self.bytes.extend_from_slice(format!("{number:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_before_their_files_and_once() {
        let mut archive = Archive::default();
        archive.program("/lib/x86_64-linux-gnu/libc.so.6", b"elf");
        archive.program("/lib/ld.so", b"elf");
        let bytes = archive.finish();
        let text = String::from_utf8_lossy(&bytes);
        let at = |name: &str| text.find(name).expect(name);
        assert!(at("lib\0") < at("lib/x86_64-linux-gnu\0"));
        assert!(at("lib/x86_64-linux-gnu\0") < at("lib/x86_64-linux-gnu/libc.so.6\0"));
        assert_eq!(text.matches("070701").count(), 5);
        assert_eq!(bytes.len() % 4, 0);
    }
}
