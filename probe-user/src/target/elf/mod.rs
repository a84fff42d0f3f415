//! The headers of an ELF file as plain values: segments, sections, identity.
//!
//! They are read once, through a cache that touches only the header pages. So a process with two
//! hundred libraries costs little until a library's symbols are asked for.

pub(super) mod frames;
pub(super) mod go_functions;
mod go_module;
mod go_table;
pub(super) mod go_version;
pub(super) mod tables;

use super::read::budget::TooLarge;
use super::read::source::Source;
use object::elf as constants;
use object::read::SectionIndex;
use object::read::elf::{
    Dyn as _, ElfFile64, FileHeader as _, NoteIterator, ProgramHeader as _, SectionHeader as _,
};
use object::{LittleEndian, ReadRef};
use std::ops::Range;

/// A parsed file of our machine.
pub(super) type ElfFile<'data> = ElfFile64<'data, LittleEndian, &'data Source>;
type Header = constants::FileHeader64<LittleEndian>;

/// Linux refuses a program with more.
const MOST_SEGMENTS: u32 = 1170;
/// Above this, section numbers no longer fit their field. Only object files have so many.
const MOST_SECTIONS: u32 = 0xff00;
/// No section that we look for has a longer name.
const LONGEST_NAME: usize = 128;
/// The kernel refuses longer paths.
const LONGEST_INTERPRETER: u64 = 4096;
/// Notes of programs take some hundred bytes.
const LARGEST_NOTES: u64 = 1 << 20;
const MOST_NOTES: usize = 64;
const LONGEST_BUILD_ID: usize = 255;

/// The reason why a file is not a usable 64-bit x86 program or library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    #[error("is not an ELF file")]
    NotElf,
    #[error("is a 32-bit ELF file; ctrace traces 64-bit x86 programs only")]
    Is32Bit,
    #[error("is an ELF file for another machine than x86-64; ctrace cannot trace it")]
    OtherMachine,
    #[error("is an ELF file, but no program or shared library (an object file or a core dump?)")]
    NotLoadable,
    #[error("is a broken ELF file: {0}; is it only partly written?")]
    Broken(String),
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
}

impl From<object::Error> for ElfError {
    fn from(error: object::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

/// A part of the file that is loaded into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub addresses: Range<u64>,
    /// Offset in the file of the first address.
    pub offset: u64,
    /// Bytes that come from the file. The rest is zero.
    pub file_size: u64,
    pub executable: bool,
    pub writable: bool,
}

/// A section, by its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub name: String,
    pub addresses: Range<u64>,
    pub offset: u64,
    /// True if the bytes are in the file. Those of `.bss` and of debug files are not.
    pub in_file: bool,
    pub executable: bool,
    pub writable: bool,
}

/// The headers of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ElfLayout {
    pub segments: Vec<Segment>,
    pub sections: Vec<Section>,
    /// The dynamic loader that the program asks for.
    pub interpreter: Option<Vec<u8>>,
    /// True if its loader runs code that the program names (DT_AUDIT), even to list libraries.
    pub auditors: bool,
    pub build_id: Option<Vec<u8>>,
    /// File name and CRC of a separate debug file.
    pub debug_link: Option<(Vec<u8>, u32)>,
}

impl ElfLayout {
    /// Reads the headers. A debug file has segments without bytes: `is_debug_file` allows them.
    pub(crate) fn parse(data: &Source, is_debug_file: bool) -> Result<Self, ElfError> {
        match data.budget().watch(|| Self::read(data, is_debug_file)) {
            (Err(_), Some(why)) => Err(ElfError::TooLarge(why)),
            // A part that is left out because it is too large does not affect the rest.
            (layout, _) => layout,
        }
    }

    fn read(data: &Source, is_debug_file: bool) -> Result<Self, ElfError> {
        let header = header(data)?;
        let endian = LittleEndian;
        if ![constants::ET_EXEC, constants::ET_DYN].contains(&header.e_type.get(endian)) {
            return Err(ElfError::NotLoadable);
        }
        let programs = header.program_headers(endian, data)?;
        let mut layout = Self::default();
        for program in programs {
            if program.p_type(endian) == constants::PT_LOAD {
                layout.segments.push(segment(program, data.length(), is_debug_file)?);
            } else if !is_debug_file && program.p_type(endian) == constants::PT_INTERP {
                if program.p_filesz(endian) > LONGEST_INTERPRETER {
                    return Err(ElfError::Broken("the path of its loader is too long".to_owned()));
                }
                layout.interpreter = program.interpreter(endian, data)?.map(<[u8]>::to_owned);
            }
        }
        let table = header.sections(endian, data)?;
        // All names are read at once. Without sections there are none.
        let names = header.shstrndx(endian, data);
        if let Ok(names) = names.and_then(|names| table.section(SectionIndex(names as usize))) {
            data.part(names.sh_offset(endian), names.sh_size(endian));
        }
        for section in table.iter() {
            let name = table.section_name(endian, section)?;
            let name = if name.len() > LONGEST_NAME { &[] } else { name };
            let flags = section.sh_flags(endian).0;
            let address = section.sh_addr(endian);
            layout.sections.push(Section {
                name: String::from_utf8_lossy(name).into_owned(),
                addresses: address..address.saturating_add(section.sh_size(endian)),
                offset: section.sh_offset(endian),
                in_file: section.sh_type(endian) != constants::SHT_NOBITS,
                executable: flags & constants::SHF_EXECINSTR.0 != 0,
                writable: flags & constants::SHF_WRITE.0 != 0,
            });
        }
        if layout.interpreter.is_some() {
            layout.auditors = programs
                .iter()
                .filter(|program| program.p_type(endian) == constants::PT_DYNAMIC)
                .any(|program| {
                    // The loader reads it by address.
                    let at = layout.file_offset(program.p_vaddr(endian));
                    at.is_none_or(|at| may_name_auditors(data, at, program.p_filesz(endian)))
                });
        }
        // Broken notes and links do not affect the symbols.
        layout.build_id = build_id(data, programs, table.iter());
        layout.debug_link = layout
            .section(".gnu_debuglink")
            .filter(|section| section.in_file)
            .and_then(|section| debug_link(data.part(section.offset, section.size())?));
        Ok(layout)
    }

    pub(crate) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Returns the file offset of the byte at an address.
    pub(crate) fn file_offset(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let within = address.checked_sub(segment.addresses.start)?;
            (within < segment.file_size).then(|| segment.offset.checked_add(within))?
        })
    }

    /// Returns the address of a byte of the file in loaded code: the inverse of
    /// [`Self::file_offset`].
    pub(crate) fn code_address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().filter(|segment| segment.executable).find_map(|segment| {
            let within = offset.checked_sub(segment.offset)?;
            (within < segment.file_size).then(|| segment.addresses.start.checked_add(within))?
        })
    }
}

impl Section {
    /// Returns the size that its header claims.
    pub(crate) fn size(&self) -> u64 {
        self.addresses.end - self.addresses.start
    }
}

fn segment(
    program: &constants::ProgramHeader64<LittleEndian>,
    length: u64,
    is_debug_file: bool,
) -> Result<Segment, ElfError> {
    let endian = LittleEndian;
    let (offset, file_size) = (program.p_offset(endian), program.p_filesz(endian));
    let address = program.p_vaddr(endian);
    let (Some(end), Some(file_end)) =
        (address.checked_add(program.p_memsz(endian)), offset.checked_add(file_size))
    else {
        return Err(ElfError::Broken("a segment wraps around".to_owned()));
    };
    if file_end > length && !is_debug_file {
        return Err(ElfError::Broken(format!("a segment ends at byte {file_end} of {length}")));
    }
    Ok(Segment {
        addresses: address..end,
        offset,
        file_size,
        executable: program.p_flags(endian).0 & constants::PF_X.0 != 0,
        writable: program.p_flags(endian).0 & constants::PF_W.0 != 0,
    })
}

/// Returns whether the dynamic section may name auditors. One without an end may.
fn may_name_auditors(data: &Source, offset: u64, size: u64) -> bool {
    type Entry = constants::Dyn64<LittleEndian>;
    let count = size as usize / size_of::<Entry>();
    let Ok(entries) = data.read_slice_at::<Entry>(offset, count) else { return true };
    for entry in entries {
        match entry.d_tag(LittleEndian) {
            constants::DT_NULL => return false,
            constants::DT_AUDIT | constants::DT_DEPAUDIT => return true,
            _ => {}
        }
    }
    true
}

/// Returns the build-id, from note sections or, without any, from the segments.
fn build_id<'data>(
    data: &'data Source,
    programs: &[constants::ProgramHeader64<LittleEndian>],
    sections: impl Iterator<Item = &'data constants::SectionHeader64<LittleEndian>>,
) -> Option<Vec<u8>> {
    let endian = LittleEndian;
    let segments = programs.iter().filter(|program| program.p_type(endian) == constants::PT_NOTE);
    let segments =
        segments.map(|it| (it.p_offset(endian), it.p_filesz(endian), it.p_align(endian)));
    let sections = sections.filter(|section| section.sh_type(endian) == constants::SHT_NOTE);
    let sections =
        sections.map(|it| (it.sh_offset(endian), it.sh_size(endian), it.sh_addralign(endian)));
    // The segments of a debug file have no bytes.
    let mut sections = sections.peekable();
    let has_sections = sections.peek().is_some();
    let segments = segments.filter(|_| !has_sections);
    let places = segments.chain(sections).take(MOST_NOTES);
    let mut notes = places.filter(|(_, size, _)| *size <= LARGEST_NOTES).filter_map(|place| {
        let (offset, size, align) = place;
        NoteIterator::<Header>::new(endian, align, data.part(offset, size)?).ok()
    });
    notes.find_map(|mut notes| {
        while let Ok(Some(note)) = notes.next() {
            let is_build_id = note.n_type(endian) == constants::NT_GNU_BUILD_ID
                && note.name() == constants::ELF_NOTE_GNU;
            if is_build_id && note.desc().len() <= LONGEST_BUILD_ID {
                return Some(note.desc().to_owned());
            }
        }
        None
    })
}

/// Parses a file name, padding to a multiple of four, and a checksum.
fn debug_link(bytes: &[u8]) -> Option<(Vec<u8>, u32)> {
    let end = memchr::memchr(0, bytes)?;
    let checksum = bytes.get((end + 1).next_multiple_of(4)..)?.first_chunk::<4>()?;
    Some((bytes[..end].to_owned(), u32::from_le_bytes(*checksum)))
}

/// Checks class, byte order, machine and the number of headers before anything else is read.
fn header(data: &Source) -> Result<&Header, ElfError> {
    let ident = data.part(0, 20).ok_or(ElfError::NotElf)?;
    if !ident.starts_with(b"\x7fELF") {
        return Err(ElfError::NotElf);
    }
    match ident[4] {
        1 => return Err(ElfError::Is32Bit),
        2 => {}
        class => return Err(ElfError::Broken(format!("its class is {class}"))),
    }
    let little = ident[5] == 1;
    if !little || u16::from_le_bytes([ident[18], ident[19]]) != constants::EM_X86_64.0 {
        return Err(ElfError::OtherMachine);
    }
    let header = Header::parse(data)?;
    let (segments, sections) =
        (header.phnum(LittleEndian, data)?, header.shnum(LittleEndian, data)?);
    if segments > MOST_SEGMENTS {
        return Err(ElfError::Broken(format!("it has {segments} segments")));
    }
    if sections > MOST_SECTIONS {
        return Err(ElfError::Broken(format!("it has {sections} sections")));
    }
    Ok(header)
}

/// Parses the file with its symbol tables.
pub(super) fn parse(data: &Source) -> Result<ElfFile<'_>, ElfError> {
    let parse = || {
        header(data)?;
        Ok(ElfFile64::parse(data)?)
    };
    let (parsed, refused) = data.budget().watch(parse);
    parsed.map_err(|error: ElfError| refused.map_or(error, ElfError::TooLarge))
}
