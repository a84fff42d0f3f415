//! Reads the sections of a linked file.

use ctrace_common::SiteEntry;
use object::{Object, ObjectSection, ObjectSymbol};
use std::path::Path;

/// A linked file, read by addresses.
pub(crate) struct Elf {
    data: Vec<u8>,
}

pub(crate) struct Site {
    pub(crate) name: Option<String>,
    pub(crate) file: String,
    pub(crate) group: Option<String>,
    pub(crate) line: u32,
    pub(crate) flags: u8,
    pub(crate) semaphore: u64,
    pub(crate) point: u64,
    pub(crate) text: u64,
}

impl Elf {
    pub(crate) fn open(path: &Path) -> Self {
        Elf { data: std::fs::read(path).expect("the program's file") }
    }

    pub(crate) fn file(&self) -> object::File<'_> {
        object::File::parse(&*self.data).expect("an ELF file")
    }

    /// Returns the section's address, alignment and bytes, all empty if there is none.
    pub(crate) fn section(&self, name: &str) -> (u64, u64, Vec<u8>) {
        self.file().section_by_name(name).map_or((0, 0, Vec::new()), |section| {
            (section.address(), section.align(), section.data().expect("data").to_vec())
        })
    }

    /// Returns the name of the section at an address, and the bytes from there on.
    pub(crate) fn at(&self, address: u64) -> (String, Vec<u8>) {
        let file = self.file();
        let section = file
            .sections()
            .find(|section| {
                section.address() != 0
                    && (section.address()..section.address() + section.size()).contains(&address)
            })
            .unwrap_or_else(|| panic!("nothing at {address:#x}"));
        let offset = (address - section.address()) as usize;
        (
            section.name().expect("a name").to_owned(),
            section.data().expect("data")[offset..].to_vec(),
        )
    }

    pub(crate) fn text(&self, address: u64) -> String {
        let bytes = self.at(address).1;
        let end = bytes.iter().position(|&byte| byte == 0).expect("an end");
        String::from_utf8(bytes[..end].to_vec()).expect("UTF-8")
    }

    /// Returns the symbol of the function around an address.
    pub(crate) fn function(&self, address: u64) -> Option<String> {
        let file = self.file();
        let symbol = file.symbols().find(|symbol| {
            (symbol.address()..symbol.address() + symbol.size()).contains(&address)
        })?;
        Some(symbol.name().expect("a name").to_owned())
    }
}

pub(crate) fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

/// Follows a self-relative field.
pub(crate) fn follow(bytes: &[u8], address: u64, offset: usize) -> Option<u64> {
    let relative = word(bytes, offset) as i32;
    (relative != 0).then(|| (address + offset as u64).wrapping_add_signed(i64::from(relative)))
}

pub(crate) fn sites(elf: &Elf) -> Vec<Site> {
    let (address, align, bytes) = elf.section("ctrace_sites");
    assert!(bytes.is_empty() || align == 32);
    assert_eq!(bytes.len() % 32, 0);
    let entries = bytes.chunks(32).zip((address..).step_by(32));
    entries
        .map(|(entry, address)| {
            assert_eq!(entry[0], 1, "version");
            let may_have = [[0, 0], [SiteEntry::FRAME, 0]];
            assert!(entry[1] & SiteEntry::POINT != 0 || may_have.contains(&[entry[2], entry[3]]));
            let to = |offset| follow(entry, address, offset);
            Site {
                name: to(8).map(|name| elf.text(name)),
                file: elf.text(to(12).expect("a file")),
                group: to(16).map(|group| elf.text(group)),
                line: word(entry, 4),
                flags: entry[1],
                semaphore: to(20).expect("a semaphore"),
                point: to(24).expect("a control point"),
                text: to(28).expect("a place in a function"),
            }
        })
        .collect()
}

/// Returns the entries of `ctrace_runtime`: addresses of flush, register and list, and the name.
pub(crate) fn runtimes(elf: &Elf) -> Vec<(u64, u64, u64, String)> {
    let (address, _, bytes) = elf.section("ctrace_runtime");
    assert_eq!(bytes.len() % 32, 0);
    let entries = bytes.chunks(32).zip((address..).step_by(32));
    entries
        .map(|(entry, address)| {
            assert_eq!((word(entry, 0), &entry[20..]), (2, &[0; 12][..]), "version and reserved");
            let to = |offset| follow(entry, address, offset).expect("not none");
            (to(4), to(8), to(12), elf.text(to(16)))
        })
        .collect()
}
