//! The functions in Go's own table (`.gopclntab`), which stripped programs keep: the runtime needs it.
//!
//! The table has no version of its own but a magic number: there are those of Go 1.16, 1.18 and 1.20,
//! which is that of all later releases so far. Numbers in it are those of a file that anybody may have
//! written.

use super::go_table::{self, TablePlace};
use super::{ElfLayout, Section, go_module};
use crate::target::read::source::{LONGEST_TEXT, Source};
use std::ops::Range;

/// Bytes of a header: 8, and eight words at most.
const HEADER: u64 = 8 + 8 * 8;

/// The layout of a table, by its magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Go116,
    /// Addresses are 32-bit distances from the beginning of the code, which the header has before Go 1.26.
    Go118,
}

/// A function, by its addresses in the object's headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GoFunction<'data> {
    pub(crate) addresses: Range<u64>,
    pub(crate) name: &'data [u8],
}

/// Go's table of an object.
pub(crate) struct GoFunctions<'data> {
    version: Version,
    text: u64,
    names: &'data [u8],
    /// The table of functions, from which the offsets in it count.
    table: &'data [u8],
    count: u64,
}

impl<'data> GoFunctions<'data> {
    /// Finds the table and reads its header. Returns `None` if there is none, or one of an unknown kind.
    pub(crate) fn read(source: &'data Source, layout: &ElfLayout) -> Option<Self> {
        let mut places = go_table::places(source, layout).into_iter();
        places.find_map(|place| Self::read_at(source, layout, &place))
    }

    fn read_at(source: &'data Source, layout: &ElfLayout, place: &TablePlace) -> Option<Self> {
        let all = source.part(place.offset, place.size)?;
        let header = all.get(..HEADER as usize)?;
        let [0, 0, _, 8] = header[4..8] else { return None };
        let version = match u32::from_le_bytes(header[..4].try_into().ok()?) {
            0xffff_fffa => Version::Go116,
            0xffff_fff0 | 0xffff_fff1 => Version::Go118,
            _ => return None,
        };
        let word = |index: usize| word_at(header, 8 + 8 * index);
        let (count, first) = match version {
            Version::Go116 => (word(0)?, 2),
            Version::Go118 => (word(0)?, 3),
        };
        // The words from the first: offsets of names, of compile units, of files, of lines, of functions.
        let text = if version == Version::Go118 { word(2)? } else { 0 };
        let part = |index: usize| all.get(usize::try_from(word(first + index)?).ok()?..);
        let mut found = Self { version, text, names: part(0)?, table: part(4)?, count };
        let is_code = |it: &Section| it.executable && it.addresses.contains(&text);
        if version == Version::Go118 && !layout.sections.iter().any(is_code) {
            // Go 1.26 leaves it out, and the linker of a program may not fill it in.
            found.text = go_module::code_start(source, layout, place.address, found.reach()?)?;
        }
        (!place.is_among_others || found.is_of_code_in(layout)).then_some(found)
    }

    /// Returns true if all of its functions are in one section of code.
    fn is_of_code_in(&self, layout: &ElfLayout) -> bool {
        let Some(reach) = self.reach() else { return false };
        let at = |number: u64| self.text.checked_add(number);
        let (Some(start), Some(end)) = (at(reach.start), at(reach.end)) else { return false };
        let holds =
            |it: &Section| it.executable && it.addresses.start <= start && end <= it.addresses.end;
        start < end && layout.sections.iter().any(holds)
    }

    /// Returns the numbers for the begin of the first function and the end of the last one.
    fn reach(&self) -> Option<Range<u64>> {
        let last = usize::try_from(self.count).ok()?.checked_mul(self.entry())?;
        Some(self.pair(0)?.0..self.pair(last)?.0)
    }

    /// Returns the summed length of all names, and more.
    pub(crate) fn text(&self) -> u64 {
        self.names.len() as u64
    }

    /// Returns the number of functions that the table says it has, as far as it has room for them.
    pub(crate) fn most(&self) -> usize {
        let entry = self.entry();
        self.count.min((self.table.len() / entry) as u64) as usize
    }

    /// Returns the length of an entry of the table: an address and an offset.
    fn entry(&self) -> usize {
        match self.version {
            Version::Go116 => 16,
            Version::Go118 => 8,
        }
    }

    /// Returns the two numbers at a place of the table, the second one if it is there.
    fn pair(&self, at: usize) -> Option<(u64, Option<u64>)> {
        let half = self.entry() / 2;
        let number = |at: usize| match self.version {
            Version::Go116 => word_at(self.table, at),
            Version::Go118 => half_at(self.table, at).map(u64::from),
        };
        Some((number(at)?, number(at + half)))
    }

    /// Returns a function by its index. `None` if it makes no sense.
    pub(crate) fn function(&self, index: usize) -> Option<GoFunction<'data>> {
        let entry = self.entry();
        let (begin, offset) = self.pair(index * entry)?;
        // The last entry is followed by the end of the code.
        let (end, _) = self.pair((index + 1) * entry)?;
        let start = self.text.checked_add(begin)?;
        let end = self.text.checked_add(end)?;
        if start >= end {
            return None;
        }
        // A function's own record begins with its address again, and then has the place of its name.
        let record = usize::try_from(offset?).ok()?;
        let name = half_at(self.table, record.checked_add(entry / 2)?)? as usize;
        let rest = self.names.get(name..)?;
        let rest = &rest[..rest.len().min(LONGEST_TEXT as usize)];
        let name = &rest[..memchr::memchr(0, rest)?];
        (!name.is_empty()).then_some(GoFunction { addresses: start..end, name })
    }
}

pub(super) fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

fn half_at(bytes: &[u8], at: usize) -> Option<u32> {
    let half = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(half.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::read::budget::ObjectLimits;

    /// Makes a table of two functions, `main.a` of 16 bytes and `main.b` of 32, from 0x1000 on.
    fn table(magic: u32) -> Vec<u8> {
        let is_old = magic == 0xffff_fffa;
        let names = b"main.a\0main.b\0\0\0";
        let words = if is_old { 7 } else { 8 };
        let at_names = 8 + 8 * words;
        let at_table = at_names + names.len() as u64;
        let mut bytes = magic.to_le_bytes().to_vec();
        bytes.extend([0, 0, 1, 8]);
        let mut header = vec![2, 0];
        if !is_old {
            header.push(0x1000);
        }
        header.extend([at_names, 0, 0, 0, at_table]);
        header.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(names);
        let number = |bytes: &mut Vec<u8>, number: u64| match is_old {
            true => bytes.extend(number.to_le_bytes()),
            false => bytes.extend((number as u32).to_le_bytes()),
        };
        let (base, entry) = if is_old { (0x1000, 16) } else { (0, 8) };
        let records = 2 * entry + entry / 2;
        let record = entry / 2 + 4;
        for (index, begin) in [0, 16].into_iter().enumerate() {
            number(&mut bytes, base + begin);
            number(&mut bytes, records + index as u64 * record);
        }
        number(&mut bytes, base + 48);
        for (begin, name) in [(0, 0_u32), (16, 7)] {
            number(&mut bytes, base + begin);
            bytes.extend(name.to_le_bytes());
        }
        bytes
    }

    fn functions(bytes: &[u8]) -> Option<Vec<(Range<u64>, String)>> {
        functions_with(bytes, &[])
    }

    /// Returns the functions of a table at 0x9000, and a description of the program behind it.
    fn functions_with(bytes: &[u8], module: &[u64]) -> Option<Vec<(Range<u64>, String)>> {
        let module: Vec<u8> = module.iter().flat_map(|word| word.to_le_bytes()).collect();
        let both = [bytes, &module].concat();
        let source = Source::of_bytes(&both, ObjectLimits::DEFAULT);
        let section = Section {
            name: ".gopclntab".into(),
            addresses: 0x9000..0x9000 + bytes.len() as u64,
            offset: 0,
            in_file: true,
            executable: false,
            writable: false,
        };
        let described = Section {
            name: ".go.module".into(),
            addresses: 0xa000..0xa000 + module.len() as u64,
            offset: bytes.len() as u64,
            ..section.clone()
        };
        let code = Section {
            name: ".text".into(),
            addresses: 0x1000..0x2000,
            executable: true,
            ..section.clone()
        };
        let layout = ElfLayout { sections: vec![section, described, code], ..ElfLayout::default() };
        let functions = GoFunctions::read(&source, &layout)?;
        let named = |it: GoFunction<'_>| (it.addresses, String::from_utf8_lossy(it.name).into());
        Some((0..functions.most()).filter_map(|at| functions.function(at)).map(named).collect())
    }

    #[test]
    fn every_kind_of_table_is_read() {
        for magic in [0xffff_fffa, 0xffff_fff0, 0xffff_fff1] {
            let expected = [(0x1000..0x1010, "main.a"), (0x1010..0x1030, "main.b")];
            let expected = expected.map(|(addresses, name)| (addresses, name.to_owned()));
            assert_eq!(functions(&table(magic)).unwrap(), expected, "{magic:#x}");
        }
        assert_eq!(functions(&table(0xffff_fff9)), None);
    }

    /// Go 1.26 has it in the description of the program. A probe at a wrong address could end the program.
    #[test]
    fn a_table_that_does_not_say_where_the_code_is_needs_a_description_that_agrees_with_it() {
        let mut bytes = table(0xffff_fff1);
        let expected = functions(&bytes).expect("the table says where the code is");
        bytes[24..32].fill(0);
        assert_eq!(functions(&bytes), None);
        let mut module = vec![0; 30];
        module[0] = 0x9000;
        module[20..23].copy_from_slice(&[0x1000, 0x1030, 0x1000]);
        assert_eq!(functions_with(&bytes, &module), Some(expected));
        // That of another table, with another first or last function, of other code, or cut off.
        for (word, wrong) in [(0, 0x9008), (20, 0x1008), (21, 0x1038), (22, 0x1008)] {
            let mut module = module.clone();
            module[word] = wrong;
            assert_eq!(functions_with(&bytes, &module), None, "word {word}");
        }
        assert_eq!(functions_with(&bytes, &module[..22]), None);
        // The code would be elsewhere.
        for by in [0x1000, 0xfe0, u64::MAX - 0x1000] {
            let mut module = module.clone();
            module[20..23].iter_mut().for_each(|word| *word = word.wrapping_add(by));
            assert_eq!(functions_with(&bytes, &module), None, "{by:#x}");
        }
    }

    /// Another linker than Go's puts the table of a position-independent program among other data.
    #[test]
    fn a_table_among_other_data_is_found_in_programs_of_go() {
        let table = table(0xffff_fff0);
        let expected = functions(&table);
        type Found = Option<Vec<(Range<u64>, String)>>;
        let among = |before: &[u8], table: &[u8], sign: &str| -> Found {
            let bytes = [before, table, &[7; 99]].concat();
            let section = |name: &str, addresses: Range<u64>, executable| Section {
                name: name.into(),
                addresses,
                offset: 0,
                in_file: true,
                executable,
                writable: false,
            };
            let sections = vec![
                section(".data.rel.ro", 0x9000..0x9000 + bytes.len() as u64, false),
                section(sign, 0x8000..0x8000, false),
                section(".text", 0x1000..0x2000, true),
            ];
            let layout = ElfLayout { sections, ..ElfLayout::default() };
            let source = Source::of_bytes(&bytes, ObjectLimits::DEFAULT);
            let found = GoFunctions::read(&source, &layout)?;
            let named =
                |it: GoFunction<'_>| (it.addresses, String::from_utf8_lossy(it.name).into());
            Some((0..found.most()).filter_map(|at| found.function(at)).map(named).collect())
        };
        let plain = [1_u8; 40];
        // It looks like one, but its functions would be nowhere.
        let alike = [&plain[..], &table[..8], &[0xee; 80]].concat();
        assert!(expected.is_some());
        for before in [&plain[..], &alike[..]] {
            assert_eq!(among(before, &table, ".go.buildinfo"), expected);
        }
        assert_eq!(among(&plain, &table, ".comment"), None, "no program of Go");
        assert_eq!(among(&plain[..39], &table, ".go.buildinfo"), None, "at no address of a table");
        assert_eq!(among(&alike, b"", ".go.buildinfo"), None);
        let mut outside = table.clone();
        outside[24..32].copy_from_slice(&0x1fe0_u64.to_le_bytes());
        assert_eq!(among(&plain, &outside, ".go.buildinfo"), None, "the code ends at 0x2000");
    }

    #[test]
    fn broken_tables_have_less_and_nothing_else_happens() {
        for magic in [0xffff_fffa, 0xffff_fff0] {
            let whole = table(magic);
            for length in 0..whole.len() {
                let found = functions(&whole[..length]).unwrap_or_default();
                assert!(found.len() <= 2);
            }
            for at in 8..whole.len() {
                let mut bytes = whole.clone();
                bytes[at] = 0xff;
                let found = functions(&bytes).unwrap_or_default();
                assert!(found.iter().all(|(addresses, _)| addresses.start < addresses.end));
            }
        }
    }
}
