//! File and line of an address, from DWARF.
//!
//! Only selected functions are looked up. The headers of the compilation units are parsed once
//! for each object; of the line tables only those of the units asked for. The tables are read
//! here and not by `addr2line`, because at a function's first byte optimised code has several
//! rows: the first is the function's own line, which debuggers show, and `addr2line` keeps the
//! last.

use super::elf;
use super::inlined::Inlined;
use gimli::{EndianArcSlice, LittleEndian, Reader as _, Section as _, SectionId, UnitRef};
use object::{CompressionFormat, Object as _, ObjectSection as _};
use std::cell::OnceCell;
use std::sync::Arc;

pub(super) type Reader = EndianArcSlice<LittleEndian>;

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// Relative to the directory the compiler ran in, where the file is below it: `main.cpp`.
    pub file: Arc<str>,
    /// The whole path.
    pub path: Arc<str>,
    pub line: Option<u32>,
}

/// The line information of an object.
pub(super) struct Lines {
    pub(super) dwarf: gimli::Dwarf<Reader>,
    pub(super) units: Vec<Unit>,
    /// Begin, end and unit of stretches of code, by their begin.
    ranges: Vec<(u64, u64, usize)>,
    /// Units that do not say which code is theirs: hand-written assembly.
    elsewhere: Vec<usize>,
}

pub(super) struct Unit {
    pub(super) unit: gimli::Unit<Reader>,
    rows: OnceCell<Vec<Row>>,
    pub(super) inlined: OnceCell<Inlined>,
}

/// From this address on, code comes from this line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    address: u64,
    /// File and line, or nothing where a stretch of code ends; this order puts an end before a
    /// beginning at the same address.
    place: Option<(u64, Option<u32>)>,
}

/// A compressed section may unpack to anything; more than this is not a debug section.
const LARGEST_SECTION: u64 = 8 << 30;
/// Ranges do not overlap in sane files; so many are looked at in others.
const OVERLAPS: usize = 16;

impl Lines {
    /// Reads the debug sections of a file, nothing when there are none.
    pub(super) fn read(bytes: &Arc<[u8]>) -> Option<Self> {
        let file = elf::parse(&bytes[..]).ok()?;
        let whole = Reader::new(Arc::clone(bytes), LittleEndian);
        let section = |id: SectionId| -> Result<Reader, gimli::Error> {
            Ok(load(&file, &whole, id.name()).unwrap_or_else(empty))
        };
        let mut dwarf = gimli::Dwarf::load(section).ok()?;
        if dwarf.debug_info.reader().is_empty() {
            return None;
        }
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let mut lines =
            Self { dwarf, units: Vec::new(), ranges: Vec::new(), elsewhere: Vec::new() };
        let mut headers = lines.dwarf.units();
        // A broken unit takes those after it along, not those before.
        while let Ok(Some(header)) = headers.next() {
            let Ok(unit) = lines.dwarf.unit(header) else { continue };
            if unit.line_program.is_none() {
                continue;
            }
            let number = lines.units.len();
            let known = lines.ranges.len();
            if let Ok(mut ranges) = lines.dwarf.unit_ranges(&unit) {
                while let Ok(Some(range)) = ranges.next() {
                    // Linkers leave zero where they threw code away.
                    if range.begin != 0 && range.begin < range.end {
                        lines.ranges.push((range.begin, range.end, number));
                    }
                }
            }
            if lines.ranges.len() == known {
                lines.elsewhere.push(number);
            }
            lines.units.push(Unit { unit, rows: OnceCell::new(), inlined: OnceCell::new() });
        }
        lines.ranges.sort_unstable();
        Some(lines)
    }

    pub(super) fn find(&self, address: u64) -> Option<SourceLine> {
        self.units_at(address).find_map(|unit| self.find_in(&self.units[unit], address))
    }

    /// The units that the code at an address may be of.
    pub(super) fn units_at(&self, address: u64) -> impl Iterator<Item = usize> {
        let after = self.ranges.partition_point(|(begin, ..)| *begin <= address);
        let near = self.ranges[..after].iter().rev().take(OVERLAPS);
        let ranged = near.filter(move |(_, end, _)| address < *end).map(|(.., unit)| *unit);
        ranged.chain(self.elsewhere.iter().copied())
    }

    fn find_in(&self, unit: &Unit, address: u64) -> Option<SourceLine> {
        let reference = unit.unit.unit_ref(&self.dwarf);
        let rows = unit.rows.get_or_init(|| rows(&unit.unit));
        let at = rows.partition_point(|row| row.address <= address).checked_sub(1)?;
        let (file, line) = rows[at].place?;
        source_line(reference, file, line)
    }
}

/// The first row at each address of a unit's line table.
fn rows(unit: &gimli::Unit<Reader>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let Some(program) = unit.line_program.clone() else { return rows };
    let mut table = program.rows();
    let mut start = 0;
    while let Ok(Some((_, row))) = table.next_row() {
        let address = row.address();
        if row.end_sequence() {
            rows.push(Row { address, place: None });
            // Code that the linker threw away.
            if rows[start].address == 0 {
                rows.truncate(start);
            }
            start = rows.len();
        } else if rows.len() == start || rows.last().is_some_and(|last| last.address != address) {
            let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
            rows.push(Row { address, place: Some((row.file_index(), line)) });
        }
    }
    rows.truncate(start);
    rows.sort_by_key(|row| (row.address, row.place.is_some()));
    rows
}

fn source_line(unit: UnitRef<'_, Reader>, file: u64, line: Option<u32>) -> Option<SourceLine> {
    let text = |value| -> Option<String> {
        let text = unit.attr_string(value).ok()?;
        Some(text.to_string_lossy().ok()?.into_owned())
    };
    let header = unit.line_program.as_ref()?.header();
    let entry = header.file(file)?;
    let name = text(entry.path_name())?;
    // Directory 0 is the one the compiler ran in.
    let directory = match entry.directory_index() {
        0 => None,
        _ => entry.directory(header).and_then(text),
    };
    let below = match directory {
        Some(directory) => join(&directory, &name),
        None => name,
    };
    let ran_in = unit.comp_dir.as_ref().and_then(|directory| directory.to_string_lossy().ok());
    let ran_in = ran_in.as_deref().unwrap_or_default().trim_end_matches('/');
    let path = join(ran_in, &below);
    let short = path.strip_prefix(ran_in).and_then(|rest| rest.strip_prefix('/'));
    let short = short.filter(|_| !ran_in.is_empty()).unwrap_or(&below);
    Some(SourceLine {
        file: short.trim_start_matches("./").into(),
        path: path.as_str().into(),
        line,
    })
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() || name.starts_with('/') {
        return name.to_owned();
    }
    format!("{}/{name}", directory.trim_end_matches('/'))
}

fn load(
    file: &object::read::elf::ElfFile64<'_, object::LittleEndian>,
    whole: &Reader,
    name: &str,
) -> Option<Reader> {
    // object also finds the old `.zdebug_` names.
    let section = file.section_by_name(name)?;
    let range = section.compressed_file_range().ok()?;
    if range.format == CompressionFormat::None {
        let start = usize::try_from(range.offset).ok()?;
        let end = start.checked_add(usize::try_from(range.uncompressed_size).ok()?)?;
        return (end <= whole.len()).then(|| whole.range(start..end));
    }
    if range.uncompressed_size > LARGEST_SECTION {
        return None;
    }
    let data = section.uncompressed_data().ok()?;
    Some(Reader::new(Arc::from(&*data), LittleEndian))
}

fn empty() -> Reader {
    Reader::new(Arc::from([]), LittleEndian)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::compile;

    const SOURCE: &str = "int helper(int x) {\n\n    return x * 7;\n}\n\nint main(int c, char **v) {\n\n    return helper(c);\n}\n";

    #[test]
    fn finds_lines() {
        for flags in ["-gdwarf-4", "-gdwarf-5", "-g -gz=zlib", "-g -gsplit-dwarf", "-g -Os -fPIC"] {
            let built = compile(&format!("gcc {flags}"), "c", SOURCE);
            let object = built.object();
            for (name, line) in [("helper", 1), ("main", 6)] {
                let function = object.functions().iter().find(|f| f.raw() == name).unwrap();
                let source = object.source_line(function.address).unwrap();
                assert_eq!(&*source.file, "input.c", "{flags}");
                assert!(source.path.ends_with("/input.c") && source.path.starts_with('/'));
                assert_eq!(source.line, Some(line), "{flags} {name}");
            }
            assert_eq!(object.source_line(u64::MAX), None);
        }
    }

    #[test]
    fn nothing_without_debug_information() {
        let built = compile("gcc", "c", SOURCE);
        let object = built.object();
        let main = object.functions().iter().find(|f| f.raw() == "main").unwrap();
        assert_eq!(object.source_line(main.address), None);
    }
}
