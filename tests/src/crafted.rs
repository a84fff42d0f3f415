//! Writes ELF files that claim more than they have, as an attacker would.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

const PROGRAM: u32 = 1;
const SYMBOLS: u32 = 2;
const STRINGS: u32 = 3;
const ALLOCATED: u64 = 2;
const CODE: u64 = 4;
const COMPRESSED: u64 = 0x800;
const HEADERS: u64 = 0x1000;
/// The address of the code.
pub const TEXT: u64 = 0x40_0000;

/// A section without a place yet.
pub struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    bytes: Vec<u8>,
    /// A false size for its header.
    claims: Option<u64>,
    link: u32,
}

impl Section {
    pub fn new(name: &'static str, bytes: Vec<u8>) -> Self {
        Self { name, kind: PROGRAM, flags: 0, address: 0, bytes, claims: None, link: 0 }
    }

    fn linked(self, kind: u32, link: u32) -> Self {
        Self { kind, link, ..self }
    }

    fn claiming(self, size: u64) -> Self {
        Self { claims: Some(size), ..self }
    }
}

/// Returns a program with `size` bytes of `ret` as its code, and these sections behind it. The
/// first one has number 2.
pub fn elf(size: usize, sections: Vec<Section>) -> Vec<u8> {
    let mut text = Section::new(".text", vec![0xc3; size]);
    (text.flags, text.address) = (ALLOCATED | CODE, TEXT);
    let mut all = vec![text];
    all.extend(sections);
    let mut names = vec![0];
    let name_offsets: Vec<u32> = all
        .iter()
        .map(|section| section.name)
        .chain([".shstrtab"])
        .map(|name| {
            let at = names.len() as u32;
            names.extend(name.bytes().chain([0]));
            at
        })
        .collect();
    all.push(Section::new(".shstrtab", names).linked(STRINGS, 0));
    let mut file = vec![0; HEADERS as usize];
    let mut headers = vec![0; 64];
    for (section, name) in all.iter().zip(name_offsets) {
        let offset = file.len() as u64;
        let size = section.claims.unwrap_or(section.bytes.len() as u64);
        headers.extend([name, section.kind].map(u32::to_le_bytes).concat());
        let words = [section.flags, section.address, offset, size];
        headers.extend(words.map(u64::to_le_bytes).concat());
        headers.extend([section.link, 0].map(u32::to_le_bytes).concat());
        headers.extend(
            [16, if section.kind == SYMBOLS { 24 } else { 0 }].map(u64::to_le_bytes).concat(),
        );
        file.extend(&section.bytes);
        file.resize(file.len().next_multiple_of(16), 0);
    }
    let at = file.len() as u64;
    let code = all[0].claims.unwrap_or(all[0].bytes.len() as u64);
    file[..64].copy_from_slice(&header(at, all.len() as u16 + 1));
    let segment = [HEADERS, TEXT, TEXT, code, code, 0x1000].map(u64::to_le_bytes).concat();
    file[64..72].copy_from_slice(&[1u32, 5].map(u32::to_le_bytes).concat());
    file[72..72 + segment.len()].copy_from_slice(&segment);
    file.extend(headers);
    file
}

/// Returns the header of a program with one segment. The table of sections is at `sections`.
fn header(sections: u64, count: u16) -> [u8; 64] {
    let mut header = [0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[16..20].copy_from_slice(&[2u16, 62].map(u16::to_le_bytes).concat());
    header[20..24].copy_from_slice(&1u32.to_le_bytes());
    header[24..48].copy_from_slice(&[TEXT, 64, sections].map(u64::to_le_bytes).concat());
    let sizes = [64, 56, 1, 64, count, count.saturating_sub(1)];
    header[52..].copy_from_slice(&sizes.map(u16::to_le_bytes).concat());
    header
}

/// Returns a table of function symbols and its strings. `names` are offsets into these.
fn symbols(strings: Vec<u8>, symbols: impl Iterator<Item = (u32, u64)>) -> Vec<Section> {
    let mut table = vec![0; 24];
    for (name, address) in symbols {
        table.extend(name.to_le_bytes());
        // A global function in section 1.
        table.extend([0x12, 0, 1, 0]);
        table.extend([address, 1].map(u64::to_le_bytes).concat());
    }
    vec![
        Section::new(".symtab", table).linked(SYMBOLS, 3),
        Section::new(".strtab", strings).linked(STRINGS, 0),
    ]
}

/// Returns one function, `only`.
fn one_function() -> Vec<Section> {
    symbols(b"\0only\0".to_vec(), std::iter::once((1, TEXT)))
}

/// Claims code of this length. `sparse` makes a file that has it.
pub fn long_code(size: u64) -> Vec<u8> {
    let mut file = elf(16, one_function());
    file[96..112].copy_from_slice(&[size; 2].map(u64::to_le_bytes).concat());
    claim_size(&mut file, ".text", size);
    file
}

/// Writes half a million headers, mostly a hole in the file, with a long name for each.
pub fn section_headers(path: &Path) -> io::Result<()> {
    const COUNT: u64 = 500_000;
    let mut names = vec![b'a'; 4000];
    names.push(0);
    let mut first = [0; 64];
    // The number of sections, too large for the header, and that of the section of names.
    first[32..40].copy_from_slice(&COUNT.to_le_bytes());
    first[40..44].copy_from_slice(&1u32.to_le_bytes());
    let mut strings = [0; 64];
    strings[4..8].copy_from_slice(&STRINGS.to_le_bytes());
    strings[24..40].copy_from_slice(&[0x3000, names.len() as u64].map(u64::to_le_bytes).concat());
    let mut header = header(0x8000, 0);
    header[62..].copy_from_slice(&0xffffu16.to_le_bytes());
    let file = File::create(path)?;
    file.write_all_at(&header, 0)?;
    file.write_all_at(&names, 0x3000)?;
    file.write_all_at(&first, 0x8000)?;
    file.write_all_at(&strings, 0x8040)?;
    file.set_len(0x8000 + COUNT * 64)
}

/// Makes names that each end the one before.
pub fn overlapping_names(count: u32, distance: u32) -> Vec<u8> {
    let mut strings = vec![b'n'; (count * distance) as usize];
    strings.push(0);
    let at = |number: u32| (number * distance, TEXT + u64::from(number) % 4096);
    elf(4096, symbols(strings, (0..count).map(at)))
}

/// Makes this many names for one function.
pub fn symbols_at_one_address(count: u32) -> Vec<u8> {
    let mut strings = vec![0];
    let offsets: Vec<u32> = (0..count)
        .map(|number| {
            let at = strings.len() as u32;
            strings.extend(format!("f{number:06}\0").bytes());
            at
        })
        .collect();
    elf(16, symbols(strings, offsets.into_iter().map(|name| (name, TEXT))))
}

/// Makes debug sections, one of which unpacks to `size` bytes from a hundred-thousandth.
pub fn zstd_strings(size: u64) -> Vec<u8> {
    const BLOCK: u64 = 128 << 10;
    let mut packed = [1u32, 0].map(u32::to_le_bytes).concat();
    packed.extend([size, 1].map(u64::to_le_bytes).concat());
    // A frame with a window of 128 KiB; each block repeats one byte.
    packed.extend([0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3]);
    let blocks = size / BLOCK;
    for number in 1..=blocks {
        let header = BLOCK << 3 | 1 << 1 | u64::from(number == blocks);
        packed.extend(&header.to_le_bytes()[..3]);
        packed.push(b's');
    }
    let mut strings = Section::new(".debug_str", packed);
    strings.flags = COMPRESSED;
    let mut all = one_function();
    all.extend([
        strings,
        Section::new(".debug_info", vec![0; 64]),
        Section::new(".debug_line", vec![0; 64]),
        Section::new(".debug_abbrev", vec![0; 64]),
    ]);
    elf(16, all)
}

/// Claims a debug section of this length. `sparse` makes a file that has it.
pub fn long_debug_section(size: u64) -> Vec<u8> {
    let mut all = one_function();
    all.push(Section::new(".debug_line", vec![0; 64]));
    all.push(Section::new(".debug_info", vec![0; 64]).claiming(size));
    elf(16, all)
}

/// Writes a file and extends it to this length with a hole.
pub fn sparse(path: &Path, bytes: &[u8], length: u64) -> io::Result<()> {
    fs::write(path, bytes)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    File::options().write(true).open(path)?.set_len(length)
}

/// Changes the size that the header of a section claims.
pub fn claim_size(bytes: &mut [u8], section: &str, size: u64) {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]) as usize;
    let (table, count, names) = (word(40) as usize, half(60), half(62));
    let names = word(table + names * 64 + 24) as usize;
    let found = (0..count).map(|number| table + number * 64).find(|at| {
        let name = u32::from_le_bytes(bytes[*at..*at + 4].try_into().expect("four bytes"));
        let name = &bytes[names + name as usize..];
        name.starts_with(section.as_bytes()) && name[section.len()] == 0
    });
    let at = found.expect("it has the section") + 32;
    bytes[at..at + 8].copy_from_slice(&size.to_le_bytes());
}
