//! One ELF object of a target, read and parsed once however many functions are taken from it.
//!
//! Opening reads the headers. The bytes, the symbols, the notes and the line tables follow when
//! they are asked for, each once, and the open file keeps the inode whatever happens to its path.

use super::debug_files::{self, DebugFile};
use super::demangle;
use super::elf::{self, ElfError, Layout};
use super::lines::{Lines, SourceLine};
use super::maps::{MappedObject, file_name};
use super::markers::{self, Markers};
use super::symbols::{Function, Symbols};
use super::usdt::{self, UsdtNotes, UsdtProbe};
use object::ReadCache;
use object::read::elf::SectionHeader as _;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Why a file cannot be used; each is one line.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    #[error("cannot open {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{} is not a regular file", path.display())]
    NotAFile { path: PathBuf },
    #[error("{} {error}", path.display())]
    Elf { path: PathBuf, error: ElfError },
}

/// An ELF object.
pub struct Object {
    path: PathBuf,
    open_path: PathBuf,
    name: Arc<str>,
    /// Device and inode.
    identity: (u64, u64),
    is_main: bool,
    file: File,
    layout: Layout,
    traits: Traits,
    bytes: OnceLock<Arc<[u8]>>,
    debug: OnceLock<DebugFile>,
    symbols: OnceLock<Symbols>,
    usdt: OnceLock<UsdtNotes>,
    markers: OnceLock<Markers>,
    lines: OnceLock<Mutex<Option<Lines>>>,
}

/// What probes must know of an object as a whole.
#[derive(Clone, Copy, Debug, Default)]
struct Traits {
    unwinder: bool,
    go: bool,
    symtab: bool,
}

impl Object {
    /// Opens the file at `open` and reads its headers; `display` is the path to show.
    pub fn open(display: &Path, open: &Path) -> Result<Self, ObjectError> {
        let io = |error| ObjectError::Io { path: display.to_owned(), error };
        // Asked before opening: opening a fifo would wait for a writer.
        if !fs::metadata(open).map_err(io)?.is_file() {
            return Err(ObjectError::NotAFile { path: display.to_owned() });
        }
        let file = File::open(open).map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        let read = || {
            let cache = ReadCache::new(&file);
            let layout = Layout::parse(&cache, false)?;
            let traits = Traits::read(&cache, &layout, &file_name(display))?;
            Ok((layout, traits))
        };
        let (layout, traits) =
            read().map_err(|error| ObjectError::Elf { path: display.to_owned(), error })?;
        Ok(Self {
            path: display.to_owned(),
            open_path: open.to_owned(),
            name: file_name(display).into(),
            identity: (meta.dev(), meta.ino()),
            is_main: true,
            file,
            layout,
            traits,
            bytes: OnceLock::new(),
            debug: OnceLock::new(),
            symbols: OnceLock::new(),
            usdt: OnceLock::new(),
            markers: OnceLock::new(),
            lines: OnceLock::new(),
        })
    }

    /// Opens an object of a process, or of a program that is to be launched.
    pub fn open_mapped(mapped: &MappedObject) -> Result<Self, ObjectError> {
        let mut object = Self::open(&mapped.path, &mapped.open_path)?;
        object.name = mapped.name.as_str().into();
        object.is_main = mapped.is_main;
        Ok(object)
    }

    /// The path to show.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path that opens this very file.
    pub fn open_path(&self) -> &Path {
        &self.open_path
    }

    /// The file's name without its directory.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Device and inode, whatever the path.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Whether this is the program itself; a file opened by its path alone is.
    pub fn is_main(&self) -> bool {
        self.is_main
    }

    pub fn set_main(&mut self, is_main: bool) {
        self.is_main = is_main;
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub fn entry(&self) -> u64 {
        self.layout.entry
    }

    pub fn build_id(&self) -> Option<&[u8]> {
        self.layout.build_id.as_deref()
    }

    pub fn interpreter(&self) -> Option<&[u8]> {
        self.layout.interpreter.as_deref()
    }

    /// Whether exceptions or panics may pass through its functions: it imports or contains an
    /// unwinder, or cannot be shown not to.
    pub fn uses_unwinder(&self) -> bool {
        self.traits.unwinder
    }

    /// Whether it is a Go program, whose stacks move.
    pub fn is_go(&self) -> bool {
        self.traits.go
    }

    /// Whether it has no symbol table of its own, only what the dynamic linker needs.
    pub fn is_stripped(&self) -> bool {
        !self.traits.symtab
    }

    /// The whole file. Empty when reading fails though opening did not: a file that has shrunk
    /// or a broken disk; it then has no functions.
    pub fn bytes(&self) -> &[u8] {
        self.shared_bytes()
    }

    pub(super) fn shared_bytes(&self) -> &Arc<[u8]> {
        self.bytes.get_or_init(|| read_whole(&self.file).unwrap_or_else(|_| Arc::from([])))
    }

    /// Its functions in the order of their addresses, one for each address.
    pub fn functions(&self) -> &[Function] {
        &self.symbols().functions
    }

    /// The function that starts at an address.
    pub fn function_at(&self, address: u64) -> Option<&Function> {
        let functions = self.functions();
        let found = functions.binary_search_by_key(&address, |function| function.address);
        found.ok().map(|at| &functions[at])
    }

    /// All that its symbol tables say, also what cannot be traced.
    pub fn symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| {
            let debug = self.is_stripped().then(|| self.debug_file());
            Symbols::read(self.bytes(), &self.layout, debug.and_then(DebugFile::bytes))
        })
    }

    /// The separate debug file, looked for once.
    pub fn debug_file(&self) -> &DebugFile {
        self.debug.get_or_init(|| debug_files::find(&self.layout, &self.path, &self.open_path))
    }

    /// Its USDT probes, the sites of one name together.
    pub fn usdt_probes(&self) -> &[UsdtProbe] {
        &self.usdt_notes().probes
    }

    /// USDT notes that could not be read.
    pub fn broken_usdt_notes(&self) -> usize {
        self.usdt_notes().broken
    }

    fn usdt_notes(&self) -> &UsdtNotes {
        self.usdt.get_or_init(|| match self.layout.section(".note.stapsdt") {
            Some(_) => usdt::read(self.bytes(), &self.layout),
            None => UsdtNotes::default(),
        })
    }

    /// Its markers. Naming those without a name may read symbols and debug information.
    pub fn markers(&self) -> &Markers {
        self.markers.get_or_init(|| match markers::are_in(&self.layout) {
            true => markers::read(self.bytes(), &self.layout, |at| self.function_name_around(at)),
            false => Markers::default(),
        })
    }

    /// The function that the code at an address is of, an inlined one where debug information
    /// tells, without what the compiler appends to copies and parts.
    fn function_name_around(&self, address: u64) -> Option<String> {
        let inlined = self.with_lines(|lines| lines.inlined_function(address));
        inlined.or_else(|| {
            let name = self.function_around(address)?.name();
            Some(demangle::without_suffix(name).to_owned())
        })
    }

    /// The function that has an address in it.
    fn function_around(&self, address: u64) -> Option<&Function> {
        let functions = self.functions();
        let after = functions.partition_point(|function| function.address <= address);
        let function = &functions[after.checked_sub(1)?];
        function.addresses().contains(&address).then_some(function)
    }

    /// File and line of an address. The first call reads the debug information.
    pub fn source_line(&self, address: u64) -> Option<SourceLine> {
        self.with_lines(|lines| lines.find(address))
    }

    fn with_lines<T>(&self, ask: impl FnOnce(&Lines) -> Option<T>) -> Option<T> {
        let lines = self.lines.get_or_init(|| Mutex::new(self.read_lines()));
        lines.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(ask)
    }

    fn read_lines(&self) -> Option<Lines> {
        if self.layout.section(".debug_line").or(self.layout.section(".zdebug_line")).is_some() {
            return Lines::read(self.shared_bytes());
        }
        Lines::read(self.debug_file().shared_bytes()?)
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Traits {
    fn read(cache: &ReadCache<&File>, layout: &Layout, name: &str) -> Result<Self, ElfError> {
        let elf = elf::parse(cache)?;
        let endian = object::LittleEndian;
        let mut traits = Self {
            go: [".gopclntab", ".note.go.buildid", ".go.buildinfo"]
                .iter()
                .any(|section| layout.section(section).is_some()),
            symtab: layout.section(".symtab").is_some(),
            unwinder: false,
        };
        // The names are looked for as bytes: an import and a definition are alike here.
        for strings in [".dynstr", ".strtab"] {
            let Some((_, section)) =
                elf.elf_section_table().section_by_name(endian, strings.as_bytes())
            else {
                continue;
            };
            traits.unwinder |= names_unwinder(section.data(endian, cache)?);
        }
        // A stripped program can have an unwinder linked into it without a name left. Tables for
        // cleaning up then are what shows; libc has them for thread cancellation alone.
        if !traits.symtab && layout.section(".gcc_except_table").is_some() {
            traits.unwinder |= !(name.starts_with("libc.so") || name.starts_with("libc-2."));
        }
        Ok(traits)
    }
}

/// Whether a table of names has one that only code with exceptions or panics needs.
fn names_unwinder(strings: &[u8]) -> bool {
    const NAMES: [&[u8]; 8] = [
        b"_Unwind_RaiseException",
        b"_Unwind_Resume",
        b"_Unwind_Resume_or_Rethrow",
        b"_Unwind_ForcedUnwind",
        b"__cxa_throw",
        b"__cxa_rethrow",
        b"__gxx_personality_v0",
        b"rust_eh_personality",
    ];
    let ends = |tail: &[u8]| matches!(tail.first(), Some(0 | b'@') | None);
    NAMES.iter().any(|name| {
        memchr::memmem::find_iter(strings, name).any(|at| ends(&strings[at + name.len()..]))
    })
}

/// Reads a file into shared memory without a second copy.
pub(super) fn read_whole(mut file: &File) -> io::Result<Arc<[u8]>> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
    if let Some(buffer) = Arc::get_mut(&mut bytes) {
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(buffer)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Built, MARKERS, compile};
    use super::*;
    use proptest::prelude::*;

    const SOURCE: &str = "static int helper(int x) { return x * 7; }\n\
                          int main(int c, char **v) { return helper(c); }\n";

    #[test]
    fn reads_identity() {
        let built = compile("gcc -Wl,--build-id=0xabcdef12", "c", SOURCE);
        let object = built.object();
        assert_eq!(object.build_id(), Some(&[0xab, 0xcd, 0xef, 0x12][..]));
        assert!(object.interpreter().unwrap().starts_with(b"/lib64/ld-linux"));
        assert_eq!(object.function_at(object.entry()).map(Function::raw), Some("_start"));
        assert_eq!(object.bytes(), fs::read(&built.program).unwrap());
    }

    #[test]
    fn refuses_what_is_no_program() {
        let built = compile("gcc -c", "c", SOURCE);
        let object_file = fs::read(&built.program).unwrap();
        let check = |bytes: &[u8], expected: &str| {
            let path = built.dir().join("candidate");
            fs::write(&path, bytes).unwrap();
            let line = Object::open(&path, &path).unwrap_err().to_string();
            assert!(line.contains(expected) && !line.contains('\n'), "{line}");
        };
        check(b"", "not an ELF file");
        check(b"#!/bin/sh\n", "not an ELF file");
        check(&object_file, "no program");
        check(&object_file[..40], "broken");
        let mut header = object_file.clone();
        header[4] = 1;
        check(&header, "32-bit");
        header[4] = 7;
        check(&header, "broken");
        header[4] = 2;
        header[18] = 183;
        check(&header, "another machine");
        let program = compile("gcc", "c", SOURCE);
        let whole = fs::read(&program.program).unwrap();
        check(&whole[..whole.len() / 2], "broken");
        check(&whole[..whole.len() - 100], "broken");

        let open = |path: &str| Object::open(path.as_ref(), path.as_ref()).unwrap_err();
        assert!(matches!(open("/no/such/file"), ObjectError::Io { .. }));
        assert!(matches!(open("/"), ObjectError::NotAFile { .. }));
        assert!(matches!(open("/dev/null"), ObjectError::NotAFile { .. }));
    }

    /// Asks for everything an object can tell.
    fn exhaust(path: &Path) {
        let Ok(object) = Object::open(path, path) else { return };
        for function in object.functions() {
            let _ = (function.name(), function.full_name(), function.aliases());
            assert!(object.layout().file_offset(function.address).is_some());
        }
        for function in object.functions().iter().take(3) {
            object.source_line(function.address);
        }
        let _ = (object.usdt_probes(), object.markers(), object.build_id());
    }

    fn small() -> Built {
        let source = r#"
            static inline __attribute__((always_inline)) int f(int x) { SCOPE(NONE, "g", 1); return x; }
            int g(int x) { SCOPE("g", NONE, 0); return f(x); }
            void _start(void) { g(1); }
            RUNTIME
        "#;
        compile("gcc -g -nostdlib -static", "c", &format!("{MARKERS}\n{source}"))
    }

    #[test]
    fn survives_mutations() {
        let built = small();
        let original = fs::read(&built.program).unwrap();
        let mutated = built.dir().join("mutated");
        let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8);
        // Most bytes that steer a parser are in the headers, at both ends of the file.
        let place = prop_oneof![
            Just(0..64usize),
            Just(64..1024),
            Just(original.len() - 2048..original.len()),
            Just(0..original.len())
        ];
        let cut = prop::option::weighted(0.1, any::<prop::sample::Index>());
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 400,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        runner
            .run(&(changes, place, cut), |(changes, place, cut)| {
                let mut bytes = original.clone();
                for (index, value) in changes {
                    let at = place.start + index.index(place.len());
                    bytes[at] = value;
                }
                if let Some(cut) = cut {
                    bytes.truncate(cut.index(original.len()));
                }
                fs::write(&mutated, &bytes).unwrap();
                exhaust(&mutated);
                Ok(())
            })
            .unwrap();
    }
}
