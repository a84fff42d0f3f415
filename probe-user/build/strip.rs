//! Takes debug information out of the object: the linker makes types for the kernel from it, and leaves
//! it there, four fifths of the bytes.
//!
//! The sections keep their numbers, which symbols and other sections refer to: those without contents
//! become entries that mean nothing.

const HEADER: usize = 64;
const ENTRY: usize = 64;

/// Offsets in the file header, and in the header of a section.
const SECTIONS_AT: usize = 0x28;
const COUNT_AT: usize = 0x3c;
const NAMES_AT: usize = 0x3e;
const KIND: usize = 4;
const OFFSET: usize = 24;
const SIZE: usize = 32;
const ALIGN: usize = 48;

/// A section without contents in the file.
const NOBITS: u64 = 8;

/// Returns the object without debug information. It is what our own linker wrote.
pub(crate) fn without_debug_information(object: &[u8]) -> Vec<u8> {
    let number = |at: usize, bytes: usize| {
        let all = object[at..at + bytes].iter().rev();
        all.fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let table = number(SECTIONS_AT, 8) as usize;
    let header = |section: u64| table + section as usize * ENTRY;
    let names = number(header(number(NAMES_AT, 2)) + OFFSET, 8) as usize;
    let mut stripped = object[..HEADER].to_vec();
    let mut headers = Vec::new();
    for section in 0..number(COUNT_AT, 2) {
        let at = header(section);
        let mut entry = object[at..at + ENTRY].to_vec();
        let name = &object[names + number(at, 4) as usize..];
        if name.starts_with(b".debug_") || name.starts_with(b".rel.debug_") {
            entry = vec![0; ENTRY];
        } else if number(at + KIND, 4) != NOBITS {
            let (from, size) = (number(at + OFFSET, 8) as usize, number(at + SIZE, 8) as usize);
            let align = number(at + ALIGN, 8).max(1) as usize;
            stripped.resize(stripped.len().next_multiple_of(align), 0);
            entry[OFFSET..OFFSET + 8].copy_from_slice(&(stripped.len() as u64).to_le_bytes());
            stripped.extend_from_slice(&object[from..from + size]);
        }
        headers.extend(entry);
    }
    stripped.resize(stripped.len().next_multiple_of(8), 0);
    let table = stripped.len() as u64;
    stripped[SECTIONS_AT..SECTIONS_AT + 8].copy_from_slice(&table.to_le_bytes());
    stripped.extend(headers);
    stripped
}
