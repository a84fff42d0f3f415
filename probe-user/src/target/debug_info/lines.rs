//! File and line of an address, from DWARF.
//!
//! Only selected functions are looked up. The unit headers are parsed once for each object, line
//! tables only for the units in question. The tables are read here and not by `addr2line`:
//! optimised code has several rows at a function's first byte. The first is the function's own
//! line, unless inlined code begins there (see `function_entries`). `addr2line` keeps the last.

use super::function_entries::{FunctionEntries, MOST_ENTRIES};
use super::inlined::Inlined;
use super::sections;
use crate::target::elf::ElfFile;
use crate::target::read::budget::{Budget, TooLarge};
use crate::target::read::source::Source;
use gimli::{
    Abbreviations, AttributeValue, DebugLineOffset, EndianArcSlice, LineInstruction, LineRow,
    LittleEndian, Reader as _, UnitHeader, UnitRef,
};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) type Reader = EndianArcSlice<LittleEndian>;

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceLine {
    /// Relative to the compiler's working directory where the file is below it: `main.cpp`.
    pub file: Arc<str>,
    /// The whole path.
    pub path: Arc<str>,
    pub line: Option<u32>,
}

/// The line information of an object.
pub(crate) struct Lines {
    pub(super) dwarf: gimli::Dwarf<Reader>,
    pub(crate) units: Vec<CompileUnit>,
    /// Begin, end and unit of stretches of code, sorted by begin.
    ranges: Vec<(u64, u64, usize)>,
    /// Units that do not list their code: hand-written assembly.
    elsewhere: Vec<usize>,
    pub(crate) budget: Arc<Budget>,
    /// Bytes of entries that may still be read for the places of functions.
    pub(super) entries_left: Cell<u64>,
}

pub(crate) struct CompileUnit {
    pub(crate) unit: gimli::Unit<Reader>,
    rows: OnceCell<Vec<Row>>,
    files: RefCell<HashMap<u64, Option<SourceFile>>>,
    pub(crate) inlined: OnceCell<Inlined>,
    pub(super) describes_types: OnceCell<bool>,
    pub(crate) functions: OnceCell<FunctionEntries>,
}

/// The source line of the code from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    address: u64,
    /// File and line, or `None` where a stretch of code ends. This order puts an end before a
    /// beginning at the same address.
    place: Option<(u64, Option<u32>)>,
}

/// A file of the source, as [`SourceLine`] has it.
#[derive(Clone)]
struct SourceFile {
    file: Arc<str>,
    path: Arc<str>,
}

/// The overlapping ranges that are searched. Sane files have none.
const OVERLAPS: usize = 16;
/// Bytes that a unit takes in memory, including its table entries.
const UNIT: u64 = 1024;
/// Bytes that a file or directory of a unit's line table takes.
const FILE: u64 = 160;
const ROW: u64 = 2 * size_of::<Row>() as u64;
const RANGE: u64 = 64;
/// Longer names count as damage.
const LONGEST_NAME: usize = 4096;
/// Limit for the files and directories of one unit, in bytes. Longer tables count as damage.
const LARGEST_LINE_HEADER: u64 = 1 << 20;

impl Lines {
    /// Reads the debug sections of a file. Returns `None` when there are none.
    pub(crate) fn read(source: &Source, file: &ElfFile<'_>) -> Option<Self> {
        let dwarf = sections::load(source, file)?;
        if gimli::Section::reader(&dwarf.debug_info).is_empty() {
            return None;
        }
        let mut lines = Self {
            dwarf,
            units: Vec::new(),
            ranges: Vec::new(),
            elsewhere: Vec::new(),
            budget: Arc::clone(source.budget()),
            entries_left: Cell::new(MOST_ENTRIES),
        };
        lines.read_units().ok()?;
        lines.ranges.sort_unstable();
        Some(lines)
    }

    fn read_units(&mut self) -> Result<(), TooLarge> {
        let mut abbreviations = HashMap::new();
        let mut headers = self.dwarf.units();
        // A broken unit hides the units after it, not those before.
        while let Ok(Some(header)) = headers.next() {
            self.budget.check()?;
            self.budget.charge(UNIT)?;
            let Some(unit) = self.read_unit(header, &mut abbreviations)? else { continue };
            let Some(program) = &unit.line_program else { continue };
            let header = program.header();
            let files = header.include_directories().len() + header.file_names().len();
            self.budget.charge(files as u64 * FILE)?;
            let number = self.units.len();
            let known = self.ranges.len();
            let mut ticker = self.budget.ticker();
            if let Ok(mut ranges) = self.dwarf.unit_ranges(&unit) {
                while let Ok(Some(range)) = ranges.next() {
                    ticker.tick()?;
                    // Linkers leave zero where they removed code.
                    if range.begin != 0 && range.begin < range.end {
                        self.budget.charge(RANGE)?;
                        self.ranges.push((range.begin, range.end, number));
                    }
                }
            }
            if self.ranges.len() == known {
                self.elsewhere.push(number);
            }
            self.units.push(CompileUnit {
                unit,
                rows: OnceCell::new(),
                files: RefCell::default(),
                inlined: OnceCell::new(),
                describes_types: OnceCell::new(),
                functions: OnceCell::new(),
            });
        }
        Ok(())
    }

    /// Reads a unit, unless it is broken.
    fn read_unit(
        &self,
        header: UnitHeader<Reader>,
        known: &mut HashMap<usize, Option<Arc<Abbreviations>>>,
    ) -> Result<Option<gimli::Unit<Reader>>, TooLarge> {
        let offset = header.debug_abbrev_offset();
        let abbreviations = match known.get(&offset.0) {
            Some(known) => known.clone(),
            None => {
                let section = gimli::Section::reader(&self.dwarf.debug_abbrev);
                let cost = sections::abbreviations_cost(section.bytes().get(offset.0..));
                self.budget.charge(cost.unwrap_or_default())?;
                let parsed = cost.and_then(|_| self.dwarf.debug_abbrev.abbreviations(offset).ok());
                known.entry(offset.0).or_insert(parsed.map(Arc::new)).clone()
            }
        };
        let Some(abbreviations) = abbreviations else { return Ok(None) };
        // The unit's parser also reads the line table's header, so its size is checked first.
        let is_sane = line_table(&header, &abbreviations).is_none_or(|offset| {
            let length = sections::line_header_length(&self.dwarf.debug_line, offset);
            length.is_some_and(|length| length <= LARGEST_LINE_HEADER)
        });
        let unit = || gimli::Unit::new_with_abbreviations(&self.dwarf, header, abbreviations);
        Ok(is_sane.then(unit).and_then(Result::ok))
    }

    pub(crate) fn find(&self, address: u64) -> Option<SourceLine> {
        self.budget.check().ok()?;
        self.units_at(address).find_map(|unit| self.find_in(unit, address))
    }

    /// Returns the units that may contain the code at an address, as long as the budget lasts.
    pub(super) fn units_at(&self, address: u64) -> impl Iterator<Item = usize> {
        let after = self.ranges.partition_point(|(begin, ..)| *begin <= address);
        let near = self.ranges[..after].iter().rev().take(OVERLAPS);
        let ranged = near.filter(move |(_, end, _)| address < *end).map(|(.., unit)| *unit);
        let mut ticker = self.budget.ticker();
        let all = ranged.chain(self.elsewhere.iter().copied());
        all.take_while(move |_| ticker.tick().is_ok())
    }

    fn find_in(&self, unit: usize, address: u64) -> Option<SourceLine> {
        let of = &self.units[unit];
        let rows = of.rows.get_or_init(|| rows(&of.unit, &self.budget));
        let at = rows.partition_point(|row| row.address <= address).checked_sub(1)?;
        let (number, line) = rows[at].place?;
        self.place(unit, number, line)
    }

    /// Returns the place with this number of a file in a unit.
    pub(super) fn place(&self, unit: usize, number: u64, line: Option<u32>) -> Option<SourceLine> {
        let unit = self.units.get(unit)?;
        let mut files = unit.files.borrow_mut();
        let file = files.entry(number).or_insert_with(|| {
            let file = source_file(unit.unit.unit_ref(&self.dwarf), number)?;
            self.budget.charge(RANGE + (file.file.len() + file.path.len()) as u64).ok()?;
            Some(file)
        });
        let SourceFile { file, path } = file.clone()?;
        Some(SourceLine { file, path, line })
    }
}

/// Returns the offset of a unit's line table.
fn line_table(
    header: &UnitHeader<Reader>,
    abbreviations: &Abbreviations,
) -> Option<DebugLineOffset<usize>> {
    let mut entries = header.entries(abbreviations);
    match entries.next_dfs().ok()??.attr_value(gimli::DW_AT_stmt_list)? {
        AttributeValue::DebugLineRef(offset) => Some(offset),
        _ => None,
    }
}

/// Returns the first row at each address of a unit's line table.
fn rows(unit: &gimli::Unit<Reader>, budget: &Budget) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut start = 0;
    // A partial result is useless and not kept: see `Object::with_lines`.
    let _ = read_rows(unit, budget, &mut rows, &mut start);
    rows.truncate(start);
    rows.sort_by_key(|row| (row.address, row.place.is_some()));
    rows
}

/// Reads rows. `start` is the beginning of the stretch of code that has no end yet.
fn read_rows(
    unit: &gimli::Unit<Reader>,
    budget: &Budget,
    rows: &mut Vec<Row>,
    start: &mut usize,
) -> Result<(), TooLarge> {
    let Some(mut program) = unit.line_program.clone() else { return Ok(()) };
    let header = program.header().clone();
    let mut instructions = header.instructions();
    let mut row = LineRow::new(&header);
    let mut ticker = budget.ticker();
    while let Ok(Some(instruction)) = instructions.next_instruction(&header) {
        ticker.tick()?;
        // Compilers never add files here, but a crafted table may do nothing else.
        if matches!(instruction, LineInstruction::DefineFile(_)) {
            continue;
        }
        match row.execute(instruction, &mut program) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(_) => break,
        }
        let address = row.address();
        if row.end_sequence() {
            budget.charge(ROW)?;
            rows.push(Row { address, place: None });
            // The linker dropped this code.
            if rows[*start].address == 0 {
                rows.truncate(*start);
            }
            *start = rows.len();
        } else if rows.len() == *start || rows.last().is_some_and(|last| last.address != address) {
            budget.charge(ROW)?;
            let line = row.line().and_then(|line| u32::try_from(line.get()).ok());
            rows.push(Row { address, place: Some((row.file_index(), line)) });
        }
        row.reset(&header);
    }
    Ok(())
}

/// Returns the text of an attribute, unless it is too long.
pub(crate) fn text(unit: UnitRef<'_, Reader>, value: AttributeValue<Reader>) -> Option<String> {
    own(&unit.attr_string(value).ok()?)
}

fn own(text: &Reader) -> Option<String> {
    let text = (text.len() <= LONGEST_NAME).then(|| text.to_string_lossy().ok())??;
    Some(text.into_owned())
}

fn source_file(unit: UnitRef<'_, Reader>, file: u64) -> Option<SourceFile> {
    let header = unit.line_program.as_ref()?.header();
    let entry = header.file(file)?;
    let name = text(unit, entry.path_name())?;
    // Directory 0 is the compiler's working directory.
    let directory = match entry.directory_index() {
        0 => None,
        _ => entry.directory(header).and_then(|it| text(unit, it)),
    };
    let below = match directory {
        Some(directory) => join(&directory, &name),
        None => name,
    };
    let ran_in = unit.comp_dir.as_ref().and_then(own).unwrap_or_default();
    let ran_in = ran_in.trim_end_matches('/');
    let path = join(ran_in, &below);
    let short = path.strip_prefix(ran_in).and_then(|rest| rest.strip_prefix('/'));
    let short = short.filter(|_| !ran_in.is_empty()).unwrap_or(&below);
    Some(SourceFile { file: short.trim_start_matches("./").into(), path: path.as_str().into() })
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() || name.starts_with('/') {
        return name.to_owned();
    }
    format!("{}/{name}", directory.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use crate::target::fixtures::compile;

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
