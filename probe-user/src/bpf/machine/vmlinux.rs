//! The bytes of the kernel's own type information. Reading them takes a system call for each of their
//! 1,400 pages, so they are mapped where the kernel allows that, from 6.16 on.

use crate::bpf::{BpfError, sys::FixedBytes};
use std::{
    fs::File,
    io::{self, Read as _},
    ops::Deref,
};

pub(super) const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// See the module.
pub(super) enum Vmlinux {
    Mapped(FixedBytes),
    Read(Vec<u8>),
}

impl Vmlinux {
    pub(super) fn open() -> Result<Self, BpfError> {
        let bytes = File::open(VMLINUX).and_then(|file| Self::of(&file));
        bytes.map_err(|source| BpfError::Unreadable { path: VMLINUX.into(), source })
    }

    fn of(mut file: &File) -> io::Result<Self> {
        let len = file.metadata()?.len() as usize;
        if let Ok(mapped) = FixedBytes::of_kernel_file(file, len) {
            return Ok(Self::Mapped(mapped));
        }
        let mut read = Vec::with_capacity(len);
        file.read_to_end(&mut read)?;
        Ok(Self::Read(read))
    }
}

impl Deref for Vmlinux {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Read(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways give the same bytes, where there are both.
    #[test]
    fn mapped_bytes_are_those_that_are_read() {
        let Ok(bytes) = Vmlinux::open() else { return };
        assert!(*bytes == std::fs::read(VMLINUX).expect("it was just opened")[..]);
    }
}
