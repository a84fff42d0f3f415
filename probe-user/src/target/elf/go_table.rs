//! The place of Go's table of functions in a file.
//!
//! It has a section of its own, except where another linker than Go's made a position-independent program:
//! that puts it among the data that the loader relocates.

use super::{ElfLayout, Section};
use crate::target::read::source::Source;
use std::ops::{ControlFlow, Range};

/// The names of the section; the second is that of position-independent programs.
const SECTIONS: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
const RELOCATED: &str = ".data.rel.ro";
/// Sections that only programs of Go have.
const SIGNS: [&str; 2] = [".note.go.buildid", ".go.buildinfo"];
/// The magic numbers of Go 1.16, 1.18 and 1.20, and the rest of the first word for this machine: instructions
/// of one byte, addresses of eight.
const BEGINS: [[u8; 8]; 3] = [
    [0xfa, 0xff, 0xff, 0xff, 0, 0, 1, 8],
    [0xf0, 0xff, 0xff, 0xff, 0, 0, 1, 8],
    [0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8],
];
/// Places among other data that are looked at.
const MOST_PLACES: usize = 4;

/// A part of the file that may be a table, or begin with one.
pub(super) struct TablePlace {
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) address: u64,
    /// Other data is around it, which may look alike.
    pub(super) is_among_others: bool,
}

/// Returns the places where the table may be.
pub(super) fn places(source: &Source, layout: &ElfLayout) -> Vec<TablePlace> {
    if let Some(section) = SECTIONS.iter().find_map(|name| layout.section(name)) {
        return section.in_file.then(|| place(section, 0, false)).into_iter().collect();
    }
    let is_go = SIGNS.iter().any(|name| layout.section(name).is_some());
    match layout.section(RELOCATED).filter(|section| is_go && section.in_file) {
        Some(section) => search(source, section),
        None => Vec::new(),
    }
}

fn place(section: &Section, from: u64, is_among_others: bool) -> TablePlace {
    let Range { start, end } = section.addresses;
    let address = start.saturating_add(from);
    let offset = section.offset.saturating_add(from);
    TablePlace { offset, size: end.saturating_sub(address), address, is_among_others }
}

fn search(source: &Source, section: &Section) -> Vec<TablePlace> {
    let mut found = Vec::new();
    let part = section.offset..section.offset.saturating_add(section.size());
    // Every number ends with these bytes, which are rare.
    let finder = memchr::memmem::Finder::new(&BEGINS[0][1..]);
    let visit = |start: u64, bytes: &[u8]| {
        for at in finder.find_iter(bytes) {
            let Some(begin) = at.checked_sub(1) else { continue };
            let place = place(section, start + begin as u64, true);
            let is_one = BEGINS.iter().any(|it| bytes[begin..].starts_with(it));
            if is_one && place.address.is_multiple_of(8) {
                found.push(place);
            }
        }
        if found.len() < MOST_PLACES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    // What cannot be read has no table.
    let _ = source.scan(part, BEGINS[0].len() - 1, visit);
    found
}
