//! One ELF object as code: where its instructions are, which functions it has, and which bytes
//! the loader puts at an address.
//!
//! Everything is read once per object and borrowed from the file's bytes; instructions are decoded
//! later, one function at a time, so that a large binary costs what is selected in it.

use super::frames::{Frame, FrameTable, Start};
use super::stacks;
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{
    Architecture, LittleEndian, Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind,
};
use std::collections::HashMap;
use std::ops::Range;
use thiserror::Error;

/// Why an object cannot be looked into at all.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlaceError {
    #[error("not a 64-bit ELF file: {0}")]
    NotElf(String),
    #[error("not code for x86-64")]
    Architecture,
    #[error("nothing in it is loaded as code")]
    NoCode,
}

/// A loaded piece of the file.
#[derive(Clone, Copy, Debug)]
struct Segment<'data> {
    address: u64,
    offset: u64,
    bytes: &'data [u8],
    executable: bool,
}

/// What a symbol says of the code at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) address: u64,
    pub(super) end: u64,
    pub(super) is_part: bool,
}

/// The code of one ELF object.
#[derive(Debug)]
pub struct CodeMap<'data> {
    segments: Vec<Segment<'data>>,
    /// Sections of code, without the linker's stubs; empty where there are no section headers.
    text: Vec<Range<u64>>,
    stubs: Vec<Range<u64>>,
    got: Vec<Range<u64>>,
    frames: FrameTable<'data>,
    symbols: Vec<Known>,
    imports: HashMap<u64, &'data str>,
    is_go: bool,
    has_unwinder: bool,
    switches_stacks: bool,
}

impl<'data> CodeMap<'data> {
    /// Reads an ELF file. Broken unwind tables or symbols are taken as far as they go.
    pub fn parse(data: &'data [u8]) -> Result<Self, PlaceError> {
        let file = ElfFile64::<LittleEndian, &[u8]>::parse(data)
            .map_err(|error| PlaceError::NotElf(error.to_string()))?;
        if file.architecture() != Architecture::X86_64 {
            return Err(PlaceError::Architecture);
        }
        let segments = segments(&file, data);
        if !segments.iter().any(|segment| segment.executable && !segment.bytes.is_empty()) {
            return Err(PlaceError::NoCode);
        }
        let sections = Sections::read(&file);
        let frames = FrameTable::read(&file, &segments_reader(&segments));
        let mut map = Self {
            segments,
            text: sections.text,
            stubs: sections.stubs,
            got: sections.got,
            frames,
            symbols: Vec::new(),
            imports: imports(&file),
            is_go: sections.is_go,
            has_unwinder: false,
            switches_stacks: false,
        };
        let names = file.symbols().chain(file.dynamic_symbols());
        let is_static = map.imports.is_empty();
        let (mut has_unwinder, mut switches_stacks) = (false, false);
        map.learn(names.filter_map(|symbol| {
            let name = symbol.name().unwrap_or_default();
            has_unwinder |= is_unwinder(name);
            // The C library defines these and does not use them.
            switches_stacks |= (is_static || symbol.is_undefined()) && stacks::is_switch(name);
            let is_code = symbol.kind() == SymbolKind::Text && symbol.is_definition();
            is_code.then(|| (symbol.address(), symbol.size(), name))
        }));
        // A static program carries its unwinder without importing it, and may have lost its names.
        map.has_unwinder = has_unwinder || (is_static && map.frames.have_landing_pads());
        map.switches_stacks = switches_stacks;
        Ok(map)
    }

    /// Whether an object switches stacks, by its symbols and by its code. What we cannot read may do
    /// anything: the kernel is content with less.
    #[must_use]
    pub fn data_switches_stacks(data: &[u8]) -> bool {
        let Ok(file) = ElfFile64::<LittleEndian, &[u8]>::parse(data) else { return true };
        let segments = segments(&file, data);
        let code = segments.iter().filter(|segment| segment.executable);
        let code: Vec<_> = code.map(|segment| (segment.address, segment.bytes)).collect();
        stacks::are_switched(&file, &code, || FrameTable::read(&file, &segments_reader(&segments)))
    }

    /// Adds function symbols found elsewhere, in a separate debug file for instance.
    pub fn learn<'name>(&mut self, symbols: impl IntoIterator<Item = (u64, u64, &'name str)>) {
        self.symbols.extend(symbols.into_iter().map(|(address, size, name)| Known {
            address,
            end: address.saturating_add(size),
            is_part: super::deny::is_part_name(name),
        }));
        self.symbols.sort_unstable_by_key(|known| (known.address, known.end, known.is_part));
        self.symbols.dedup_by_key(|known| (known.address, known.end));
    }

    /// Whether the object was built by the Go compiler, whose stacks move.
    #[must_use]
    pub fn is_go(&self) -> bool {
        self.is_go
    }

    /// Whether the object imports or contains an unwinder (`_Unwind_RaiseException` and kin).
    #[must_use]
    pub fn has_unwinder(&self) -> bool {
        self.has_unwinder
    }

    /// Whether its symbols tell that the object switches stacks.
    #[must_use]
    pub fn switches_stacks(&self) -> bool {
        self.switches_stacks
    }

    /// Where in the file the byte at `address` lies.
    #[must_use]
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        let segment = self.segment(address)?;
        Some(address - segment.address + segment.offset)
    }

    /// The file's bytes from `address` to the end of its segment.
    #[must_use]
    pub fn bytes(&self, address: u64) -> Option<&'data [u8]> {
        let segment = self.segment(address)?;
        segment.bytes.get(usize::try_from(address - segment.address).ok()?..)
    }

    pub(super) fn is_code(&self, address: u64) -> bool {
        let loaded = self.segment(address).is_some_and(|segment| segment.executable);
        loaded && (self.text.is_empty() || contains(&self.text, address) || self.is_stub(address))
    }

    /// Whether `address` lies in a procedure linkage table.
    pub(super) fn is_stub(&self, address: u64) -> bool {
        contains(&self.stubs, address)
    }

    pub(super) fn is_got(&self, address: u64) -> bool {
        contains(&self.got, address)
    }

    /// The imported symbol whose address the loader writes at `slot`.
    pub(super) fn import(&self, slot: u64) -> Option<&'data str> {
        self.imports.get(&slot).copied()
    }

    /// The imported function that a linker's stub or a slot of its table leads to.
    pub(super) fn import_behind(&self, target: u64) -> Option<&'data str> {
        if let Some(name) = self.import(target) {
            return Some(name);
        }
        if !self.is_stub(target) {
            return None;
        }
        let bytes = self.bytes(target)?;
        let mut decoder = Decoder::with_ip(64, bytes, target, DecoderOptions::NONE);
        let mut first = decoder.iter().take(2);
        let jump = first.find(|i| i.flow_control() == FlowControl::IndirectBranch)?;
        jump.is_ip_rel_memory_operand().then(|| self.import(jump.ip_rel_memory_address()))?
    }

    pub(super) fn frames(&self) -> &FrameTable<'data> {
        &self.frames
    }

    /// The part of a function, or the function, that `address` lies in.
    pub(super) fn frame(&self, address: u64) -> Option<&Frame> {
        self.frames.containing(address)
    }

    /// Whether the frame is what people call a function: entered by calls, at its first byte.
    pub(super) fn is_function(&self, frame: &Frame) -> bool {
        frame.first == Start::Function && !self.is_named_part(frame.start)
    }

    fn is_named_part(&self, address: u64) -> bool {
        let mut here = self.symbols_at(address).peekable();
        here.peek().is_some() && here.all(|known| known.is_part)
    }

    /// The symbols that start at `address`.
    pub(super) fn symbols_at(&self, address: u64) -> impl Iterator<Item = &Known> {
        let from = self.symbols.partition_point(|known| known.address < address);
        self.symbols[from..].iter().take_while(move |known| known.address == address)
    }

    /// A symbol that covers `address` without starting there.
    pub(super) fn symbol_around(&self, address: u64) -> Option<&Known> {
        let to = self.symbols.partition_point(|known| known.address < address);
        self.symbols[..to].iter().rev().take(16).find(|known| known.end > address)
    }

    /// Every function symbol's address and size, aliases listed once each size.
    pub fn symbols(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.symbols.iter().map(|known| (known.address, known.end - known.address))
    }

    fn segment(&self, address: u64) -> Option<&Segment<'data>> {
        find_segment(&self.segments, address)
    }
}

fn contains(ranges: &[Range<u64>], address: u64) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

fn find_segment<'a, 'data>(
    segments: &'a [Segment<'data>],
    address: u64,
) -> Option<&'a Segment<'data>> {
    segments.iter().find(|segment| {
        address.checked_sub(segment.address).is_some_and(|past| past < segment.bytes.len() as u64)
    })
}

fn segments_reader<'a, 'data>(
    segments: &'a [Segment<'data>],
) -> impl Fn(u64) -> Option<&'data [u8]> + 'a {
    move |address| {
        let segment = find_segment(segments, address)?;
        segment.bytes.get(usize::try_from(address - segment.address).ok()?..)
    }
}

fn segments<'data>(
    file: &ElfFile64<'data, LittleEndian, &'data [u8]>,
    data: &'data [u8],
) -> Vec<Segment<'data>> {
    let endian = LittleEndian;
    let loaded = file.elf_program_headers().iter();
    let mut segments: Vec<_> = loaded
        .filter(|header| header.p_type(endian) == elf::PT_LOAD)
        .filter_map(|header| {
            let offset = header.p_offset(endian);
            let from = usize::try_from(offset).ok()?.min(data.len());
            let size = usize::try_from(header.p_filesz(endian)).ok()?;
            let bytes = &data[from..from.saturating_add(size).min(data.len())];
            let executable = header.p_flags(endian).0 & elf::PF_X.0 != 0;
            let address = header.p_vaddr(endian);
            address.checked_add(bytes.len() as u64)?;
            Some(Segment { address, offset, bytes, executable })
        })
        .collect();
    segments.sort_by_key(|segment| segment.address);
    segments
}

#[derive(Default)]
struct Sections {
    text: Vec<Range<u64>>,
    stubs: Vec<Range<u64>>,
    got: Vec<Range<u64>>,
    is_go: bool,
}

impl Sections {
    fn read<'data>(file: &ElfFile64<'data, LittleEndian, &'data [u8]>) -> Self {
        let code = elf::SHF_EXECINSTR.0 | elf::SHF_ALLOC.0;
        let mut found = Self::default();
        for section in file.sections() {
            let Ok(name) = section.name() else { continue };
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            let from = section.address();
            let range = from..from.saturating_add(section.size());
            if name == ".got" || name.starts_with(".got.") {
                found.got.push(range);
            } else if name == ".plt" || name.starts_with(".plt.") || name == ".iplt" {
                found.stubs.push(range);
            } else if sh_flags.0 & code == code {
                found.text.push(range);
            }
            found.is_go |= matches!(name, ".gopclntab" | ".go.buildinfo" | ".note.go.buildid");
        }
        found
    }
}

fn imports<'data>(file: &ElfFile64<'data, LittleEndian, &'data [u8]>) -> HashMap<u64, &'data str> {
    let Some(relocations) = file.dynamic_relocations() else { return HashMap::new() };
    relocations
        .filter_map(|(slot, relocation)| {
            let object::RelocationTarget::Symbol(index) = relocation.target() else { return None };
            let table = file.dynamic_symbol_table()?;
            let symbol = object::ObjectSymbolTable::symbol_by_index(&table, index).ok()?;
            Some((slot, symbol.name().ok()?))
        })
        .collect()
}

fn is_unwinder(name: &str) -> bool {
    const UNWINDERS: [&str; 4] =
        ["_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_ForcedUnwind", "_Unwind_Backtrace"];
    name.starts_with("_U") && UNWINDERS.iter().any(|unwinder| name.starts_with(unwinder))
}
