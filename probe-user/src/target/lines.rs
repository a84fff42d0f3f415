//! File and line of an address, from DWARF.
//!
//! Only selected functions are looked up. The sections are parsed once for each object; of the
//! line tables only those of the compilation units asked for.

use super::elf;
use addr2line::Context;
use gimli::{EndianArcSlice, LittleEndian, Section as _, SectionId};
use object::{CompressionFormat, Object as _, ObjectSection as _};
use std::sync::Arc;

type Reader = EndianArcSlice<LittleEndian>;

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
    context: Context<Reader>,
}

/// A compressed section may unpack to anything; more than this is not a debug section.
const LARGEST_SECTION: u64 = 8 << 30;

impl Lines {
    /// Reads the debug sections of a file, nothing when there are none.
    pub(super) fn read(bytes: &Arc<[u8]>) -> Option<Self> {
        let file = elf::parse(&bytes[..]).ok()?;
        let whole = Reader::new(Arc::clone(bytes), LittleEndian);
        let section = |id: SectionId| -> Result<Reader, gimli::Error> {
            Ok(load(&file, &whole, id.name()).unwrap_or_else(empty))
        };
        let dwarf = gimli::Dwarf::load(section).ok()?;
        if dwarf.debug_info.reader().is_empty() {
            return None;
        }
        Some(Self { context: Context::from_dwarf(dwarf).ok()? })
    }

    pub(super) fn find(&self, address: u64) -> Option<SourceLine> {
        // addr2line adds one to it.
        if address == u64::MAX {
            return None;
        }
        let location = self.context.find_location(address).ok()??;
        let path = location.file?;
        let file = self
            .compile_directory(address)
            .and_then(|directory| path.strip_prefix(&directory)?.strip_prefix('/'))
            .unwrap_or(path);
        let file = file.trim_start_matches("./");
        Some(SourceLine { file: file.into(), path: path.into(), line: location.line })
    }

    /// The directory the compiler of this unit ran in.
    fn compile_directory(&self, address: u64) -> Option<String> {
        let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
        let directory = unit.comp_dir.as_ref()?;
        let directory = gimli::Reader::to_string_lossy(directory).ok()?;
        Some(directory.trim_end_matches('/').to_owned())
    }
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

    const SOURCE: &str = "int helper(int x)\n{\n    return x * 7;\n}\n\nint main(int c, char **v)\n{\n    return helper(c);\n}\n";

    #[test]
    fn finds_lines() {
        for flags in ["-gdwarf-4", "-gdwarf-5", "-g -gz=zlib", "-g -gsplit-dwarf", "-g -Os -fPIC"] {
            let built = compile(&format!("gcc {flags}"), "c", SOURCE);
            let object = built.object();
            for (name, line) in [("helper", 2), ("main", 7)] {
                let function = object.functions().iter().find(|f| f.raw() == name).unwrap();
                let source = object.source_line(function.address).unwrap();
                assert_eq!(&*source.file, "input.c", "{flags}");
                assert!(source.path.ends_with("/input.c") && source.path.starts_with('/'));
                // The compiler counts the brace or the line before it.
                assert!(source.line == Some(line) || source.line == Some(line - 1), "{flags}");
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
