//! The headers of an ELF file as plain values: segments, sections, identity.
//!
//! Read once, through a cache that touches only the header pages, so that a process with two
//! hundred libraries costs little until a library's symbols are asked for.

use object::elf as constants;
use object::read::elf::{Dyn as _, ElfFile64, ProgramHeader as _, SectionHeader as _};
use object::{LittleEndian, Object as _, ReadRef};
use std::ops::Range;

/// What is wrong with a file that should be a 64-bit x86 program or library.
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
}

impl From<object::Error> for ElfError {
    fn from(error: object::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

/// A part of the file that is loaded into memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub addresses: Range<u64>,
    /// Offset in the file of the first address.
    pub offset: u64,
    /// Bytes that come from the file; what follows is zero.
    pub file_size: u64,
    pub executable: bool,
    pub writable: bool,
}

/// A section, by its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    pub addresses: Range<u64>,
    pub offset: u64,
    /// The bytes are in the file, not left out as in `.bss` or in a debug file.
    pub in_file: bool,
    pub executable: bool,
    pub writable: bool,
}

/// The headers of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub segments: Vec<Segment>,
    pub sections: Vec<Section>,
    pub entry: u64,
    /// The dynamic loader the program asks for.
    pub interpreter: Option<Vec<u8>>,
    /// Its dynamic loader runs code that the program names (DT_AUDIT), even to list libraries.
    pub auditors: bool,
    pub build_id: Option<Vec<u8>>,
    /// File name and CRC of a separate debug file.
    pub debug_link: Option<(Vec<u8>, u32)>,
}

impl Layout {
    /// Reads the headers. A debug file has segments without bytes: `is_debug_file` allows them.
    pub fn parse<'data, R: ReadRef<'data>>(data: R, is_debug_file: bool) -> Result<Self, ElfError> {
        let elf = parse(data)?;
        let endian = LittleEndian;
        let header = elf.elf_header();
        if ![constants::ET_EXEC, constants::ET_DYN].contains(&header.e_type.get(endian)) {
            return Err(ElfError::NotLoadable);
        }
        let length =
            data.len().map_err(|()| ElfError::Broken("its length is unknown".to_owned()))?;
        let mut layout = Self { entry: header.e_entry.get(endian), ..Self::default() };
        for program in elf.elf_program_headers() {
            if program.p_type(endian) == constants::PT_LOAD {
                let (offset, file_size) = (program.p_offset(endian), program.p_filesz(endian));
                let address = program.p_vaddr(endian);
                let (Some(end), Some(file_end)) =
                    (address.checked_add(program.p_memsz(endian)), offset.checked_add(file_size))
                else {
                    return Err(ElfError::Broken("a segment wraps around".to_owned()));
                };
                if file_end > length && !is_debug_file {
                    return Err(ElfError::Broken(format!(
                        "a segment ends at byte {file_end} of {length}"
                    )));
                }
                layout.segments.push(Segment {
                    addresses: address..end,
                    offset,
                    file_size,
                    executable: program.p_flags(endian).0 & constants::PF_X.0 != 0,
                    writable: program.p_flags(endian).0 & constants::PF_W.0 != 0,
                });
            } else if !is_debug_file && let Some(path) = program.interpreter(endian, data)? {
                layout.interpreter = Some(path.to_owned());
            }
        }
        let table = elf.elf_section_table();
        for section in table.iter() {
            let name = table.section_name(endian, section)?;
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
            layout.auditors = elf
                .elf_program_headers()
                .iter()
                .filter(|program| program.p_type(endian) == constants::PT_DYNAMIC)
                .any(|program| {
                    // By address, as the loader reads it.
                    let at = layout.file_offset(program.p_vaddr(endian));
                    at.is_none_or(|at| may_name_auditors(data, at, program.p_filesz(endian)))
                });
        }
        // Broken notes and links take nothing away from the symbols.
        layout.build_id = elf.build_id().ok().flatten().map(<[u8]>::to_owned);
        layout.debug_link =
            elf.gnu_debuglink().ok().flatten().map(|(name, crc)| (name.to_owned(), crc));
        Ok(layout)
    }

    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Where the byte at an address is in the file.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let within = address.checked_sub(segment.addresses.start)?;
            (within < segment.file_size).then(|| segment.offset.checked_add(within))?
        })
    }

    /// The address of a byte of the file in the code that is loaded, the inverse of
    /// [`Self::file_offset`].
    pub fn code_address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().filter(|segment| segment.executable).find_map(|segment| {
            let within = offset.checked_sub(segment.offset)?;
            (within < segment.file_size).then(|| segment.addresses.start.checked_add(within))?
        })
    }
}

/// Whether the dynamic section names auditors; one without an end may.
fn may_name_auditors<'data, R: ReadRef<'data>>(data: R, offset: u64, size: u64) -> bool {
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

/// Checks class, byte order and machine before anything else is read.
pub fn parse<'data, R: ReadRef<'data>>(
    data: R,
) -> Result<ElfFile64<'data, LittleEndian, R>, ElfError> {
    let ident = data.read_bytes_at(0, 20).map_err(|()| ElfError::NotElf)?;
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
    Ok(ElfFile64::parse(data)?)
}
