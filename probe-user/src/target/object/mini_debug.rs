//! Unpacks the mini debug information of a stripped program: a small ELF file with symbols, packed by xz into the
//! section `.gnu_debugdata`.
//!
//! xz may make seven thousand bytes of one, and what its chunks say of their sizes may be wrong. So no more is
//! unpacked than there is room for, and the decoder's own memory has a limit.

use crate::target::elf::ElfLayout;
use crate::target::read::source::Source;
use lzma_rust2::XzReader;
use std::io::Read;
use std::sync::Arc;

/// The section with the packed file.
pub(super) const SECTION: &str = ".gnu_debugdata";
/// Larger ones are no mini debug information.
const LARGEST: u64 = 64 << 20;
/// The same of what is packed: blocks without contents take time, too.
const LARGEST_PACKED: u64 = 16 << 20;
/// The limit of the decoder's memory in KiB: the largest dictionary of xz's levels is 64 MiB.
const MOST_KIB: u32 = 80 << 10;
/// Bytes before the first block.
const STREAM_HEADER: usize = 12;
const MAGIC: &[u8] = b"\xfd7zXZ\0";

/// Returns the file in the section, with the budget of the object. `None`: there is none, or it is broken or too
/// large.
pub(super) fn unpack(source: &Source, layout: &ElfLayout) -> Option<Source> {
    let section = layout.section(SECTION).filter(|section| section.in_file)?;
    let length = section.addresses.end - section.addresses.start;
    let packed = (length <= LARGEST_PACKED).then(|| source.copy(section.offset, length))??;
    let unpacked = unpacked(source, &packed);
    drop(packed);
    source.budget().release(length);
    unpacked
}

fn unpacked(source: &Source, packed: &[u8]) -> Option<Source> {
    let size = unpacked_size(packed).filter(|size| *size <= LARGEST)?;
    let budget = source.budget();
    let _decoder = budget.lend(size).ok()?;
    let mut unpacked = source.shared(size)?;
    let read = || {
        let is_whole = fill(Arc::get_mut(&mut unpacked)?, packed);
        let source = Source::of_shared(unpacked, Arc::clone(budget));
        // Without names it would only hide that the program is stripped.
        let has_names =
            || ElfLayout::parse(&source, true).is_ok_and(|it| it.section(".symtab").is_some());
        (is_whole && has_names()).then_some(source)
    };
    budget.try_optional(read, Option::is_none)
}

/// Unpacks into this memory. Returns whether that is all.
fn fill(room: &mut [u8], packed: &[u8]) -> bool {
    let mut reader = XzReader::new_mem_limit(packed, false, MOST_KIB);
    reader.read_exact(room).is_ok() && matches!(reader.read(&mut [0]), Ok(0))
}

/// Adds up the sizes that the chunks of all blocks name. Returns `None` for what is no xz stream of LZMA2 blocks. That
/// the sizes are true is not certain.
fn unpacked_size(packed: &[u8]) -> Option<u64> {
    if !packed.starts_with(MAGIC) {
        return None;
    }
    let check = match packed.get(7)? & 15 {
        0 => 0,
        1 => 4,
        4 => 8,
        10 => 32,
        _ => return None,
    };
    let (mut at, mut size) = (STREAM_HEADER, 0);
    loop {
        // The header of a block in words; 0 is the index behind the last block.
        let header = (usize::from(*packed.get(at)?) + 1) * 4;
        if header == 4 {
            return Some(size);
        }
        at += header;
        loop {
            let control = *packed.get(at)?;
            let short =
                |at: usize| Some(u16::from_be_bytes([*packed.get(at)?, *packed.get(at + 1)?]));
            let low = |at: usize| Some(u64::from(short(at)?) + 1);
            at += match control {
                0 => 1,
                1 | 2 => {
                    size += low(at + 1)?;
                    3 + low(at + 1)? as usize
                }
                128.. => {
                    size += (u64::from(control & 31) << 16) + low(at + 1)?;
                    5 + usize::from(control >= 192) + low(at + 3)? as usize
                }
                _ => return None,
            };
            if control == 0 {
                break;
            }
        }
        at = at.next_multiple_of(4) + check;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::fixtures::{Built, compile};

    const SOURCE: &str = "static __attribute__((noinline)) int helper(int x) { return x * 7; }\n\
                          int main(int c, char **v) { return helper(c); }\n";

    fn has_xz() -> bool {
        std::process::Command::new("xz").arg("--version").output().is_ok()
    }

    /// A stripped program whose symbols are packed by these options of xz.
    fn packed(options: &str) -> Built {
        let built = compile("gcc -g", "c", SOURCE);
        built.run("objcopy --only-keep-debug program full");
        built.run("objcopy --strip-debug full mini");
        built.run(&format!("xz {options} mini"));
        built.run("objcopy --strip-all program stripped");
        built.run("objcopy --add-section .gnu_debugdata=mini.xz stripped program");
        built
    }

    fn names_helper(built: &Built) -> bool {
        built.object().functions().iter().any(|function| function.raw() == "helper")
    }

    #[test]
    fn functions_of_a_stripped_program_have_their_names_in_it() {
        if !has_xz() {
            return;
        }
        for options in ["", "--check=crc32 -0", "--check=none --block-size=4KiB", "-e9"] {
            let built = packed(options);
            assert!(built.object().is_stripped());
            assert!(names_helper(&built), "{options}");
        }
    }

    #[test]
    fn what_is_broken_or_too_large_names_nothing() {
        if !has_xz() {
            return;
        }
        let built = packed("");
        let path = built.dir().join("mini.xz");
        let whole = std::fs::read(&path).expect("it is there");
        let mut broken = whole.clone();
        broken[whole.len() / 2] ^= 0x55;
        let zeros = built.dir().join("zeros");
        std::fs::File::create(&zeros).and_then(|file| file.set_len(LARGEST + 1)).expect("room");
        built.run("xz -0 zeros");
        let bomb = std::fs::read(built.dir().join("zeros.xz")).expect("it is there");
        assert!(bomb.len() < 1 << 20);
        for contents in [&whole[..whole.len() / 2], &broken, b"\xfd7zXZ\0", b"", &bomb] {
            std::fs::write(&path, contents).expect("room");
            built.run("objcopy --add-section .gnu_debugdata=mini.xz stripped program");
            assert!(!names_helper(&built));
        }
    }

    /// A chunk may hide others in what it says are its own packed bytes.
    #[test]
    fn what_is_longer_than_its_chunks_say_is_refused() {
        // Two chunks, stored: 3 bytes, and 2.
        let block = [2, 0, 0x21, 1, 0x16, 0, 0, 0];
        let crc = |bytes: &[u8]| crc32fast::hash(bytes).to_le_bytes();
        let mut packed = [MAGIC, &[0, 0], &crc(&[0, 0]), &block, &crc(&block)].concat();
        packed.extend([1, 0, 2, b'a', b'b', b'c', 2, 0, 1, b'd', b'e', 0]);
        assert_eq!(unpacked_size(&packed), None, "it is cut");
        let mut room = [0; 4];
        assert!(!fill(&mut room, &packed) && !fill(&mut [0; 9], &packed));
        assert_eq!(&room, b"abcd");
    }

    /// The data may say anything.
    #[test]
    fn cut_streams_have_no_size() {
        if !has_xz() {
            return;
        }
        let built = packed("");
        let whole = std::fs::read(built.dir().join("mini.xz")).expect("it is there");
        assert!(unpacked_size(&whole).is_some_and(|size| size > 500));
        let sizes = (0..whole.len() - 64).filter_map(|length| unpacked_size(&whole[..length]));
        assert_eq!(sizes.count(), 0);
    }
}
