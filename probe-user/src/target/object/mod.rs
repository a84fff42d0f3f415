//! One ELF object of a target, read and parsed once however many functions are taken from it.
//!
//! Opening reads the headers. Bytes, symbols, notes and line tables are each read once, on demand.
//! The open file keeps the inode, whatever happens to its path.

mod around;
mod code;
mod debug_files;
mod error;
mod inlined;
mod mini_debug;
mod parts;
mod split_parts;
pub(crate) mod symbols;
mod unnamed;
mod variables;

use super::debug_info::lines::{Lines, SourceLine};
use super::elf::{self, ElfError, ElfLayout};
use super::markers::{self, Markers};
use super::process::maps::{MappedObject, file_name};
use super::read::budget::{Budget, ObjectLimits, TooLarge, own_time};
use super::read::regular::open_regular;
use super::read::source::Source;
use super::usdt::{self, UsdtNotes, UsdtProbe, variables as usdt_variables};
use debug_files::{DebugFile, Rejected};
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use symbols::{Function, Symbols};

pub(crate) use error::ObjectError;

/// An ELF object.
pub struct Object {
    path: PathBuf,
    open_path: PathBuf,
    name: Arc<str>,
    /// Device and inode.
    identity: (u64, u64),
    is_main: bool,
    /// True if functions without a name are known by their addresses.
    is_named_by_address: bool,
    source: Source,
    layout: ElfLayout,
    traits: Traits,
    debug: OnceLock<DebugFile>,
    symbols: OnceLock<Symbols>,
    usdt: OnceLock<UsdtNotes>,
    markers: OnceLock<Markers>,
    lines: Mutex<LineTable>,
}

/// The line tables of an object, or of its debug file.
enum LineTable {
    Unread,
    Read { lines: Option<Box<Lines>>, memory: u64, time: Duration },
    TooLarge(TooLarge),
}

/// Traits of the whole object that placement needs.
#[derive(Clone, Copy, Debug, Default)]
struct Traits {
    unwinder: Option<&'static str>,
    go: bool,
    symtab: bool,
}

impl Object {
    /// Opens the file at `open` and reads its headers; `display` is the path to show.
    pub(crate) fn open(display: &Path, open: &Path) -> Result<Self, ObjectError> {
        Self::open_within(display, open, Budget::new(ObjectLimits::DEFAULT))
    }

    /// Like [`Self::open`], with a budget.
    pub fn open_within(
        display: &Path,
        open: &Path,
        budget: Arc<Budget>,
    ) -> Result<Self, ObjectError> {
        let io = |error| ObjectError::Io { path: display.to_owned(), error };
        let Some(file) = open_regular(open).map_err(io)? else {
            return Err(ObjectError::NotAFile { path: display.to_owned() });
        };
        let meta = file.metadata().map_err(io)?;
        let source = Source::of_file(file, Arc::clone(&budget)).map_err(io)?;
        let look = budget.look();
        let read = || {
            let layout = ElfLayout::parse(&source, false)?;
            let traits = Traits::read(&source, &layout, &file_name(display))?;
            Ok((layout, traits))
        };
        let (layout, traits) =
            read().map_err(|error| ObjectError::Elf { path: display.to_owned(), error })?;
        drop(look);
        Ok(Self {
            path: display.to_owned(),
            open_path: open.to_owned(),
            name: file_name(display).into(),
            identity: (meta.dev(), meta.ino()),
            is_main: true,
            is_named_by_address: true,
            source,
            layout,
            traits,
            debug: OnceLock::new(),
            symbols: OnceLock::new(),
            usdt: OnceLock::new(),
            markers: OnceLock::new(),
            lines: Mutex::new(LineTable::Unread),
        })
    }

    /// Opens an object of a process, or of a program that is to be launched.
    #[cfg(test)]
    pub(crate) fn open_mapped(mapped: &MappedObject) -> Result<Self, ObjectError> {
        Self::open_one_of(mapped, ObjectLimits::DEFAULT, &Budget::of_all(ObjectLimits::DEFAULT))
    }

    /// Opens an object of a process. All objects of the process share a budget.
    pub(crate) fn open_one_of(
        mapped: &MappedObject,
        limits: ObjectLimits,
        all: &Arc<Budget>,
    ) -> Result<Self, ObjectError> {
        let budget = Budget::within(limits, all);
        let mut object = Self::open_within(&mapped.path, mapped.path_now(), budget)?;
        object.name = mapped.name.as_str().into();
        object.is_main = mapped.is_main;
        object.is_named_by_address = mapped.is_main;
        Ok(object)
    }

    /// Returns the path to show.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path that opens this very file.
    pub(crate) fn open_path(&self) -> &Path {
        &self.open_path
    }

    /// Returns the file's name without its directory.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns device and inode, which do not depend on the path.
    pub(crate) fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Returns whether this is the program itself. A file opened by its path alone counts as one.
    pub(crate) fn is_main(&self) -> bool {
        self.is_main
    }

    #[cfg(test)]
    pub(crate) fn set_main(&mut self, is_main: bool) {
        (self.is_main, self.is_named_by_address) = (is_main, is_main);
    }

    pub(crate) fn layout(&self) -> &ElfLayout {
        &self.layout
    }

    pub(crate) fn build_id(&self) -> Option<&[u8]> {
        self.layout.build_id.as_deref()
    }

    pub(crate) fn interpreter(&self) -> Option<&[u8]> {
        self.layout.interpreter.as_deref()
    }

    /// Returns the sign that exceptions or panics may pass through its functions: a name that
    /// shows that it imports or contains an unwinder, or a section that leaves that open.
    pub(crate) fn unwinder(&self) -> Option<&'static str> {
        self.traits.unwinder
    }

    /// Returns whether it is a Go program, whose stacks move.
    pub(crate) fn is_go(&self) -> bool {
        self.traits.go
    }

    /// Returns whether it lacks a symbol table of its own and has only the dynamic linker's.
    pub(crate) fn is_stripped(&self) -> bool {
        !self.traits.symtab
    }

    /// Returns its bytes, which are read on demand.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the reason if a part is too large, so that nothing was found in it. Lines of
    /// functions do not count.
    pub(crate) fn too_large(&self) -> Option<ObjectError> {
        let parts = [
            self.symbols.get().and_then(|symbols| symbols.too_large),
            self.usdt.get().and_then(|notes| notes.too_large),
            self.markers.get().and_then(|markers| markers.too_large),
        ];
        let why = parts.into_iter().flatten().next()?;
        Some(ObjectError::Elf { path: self.path.clone(), error: why.into() })
    }

    /// Lists the parts that were left out because they are too large, one line each.
    pub(crate) fn left_out(&self) -> Vec<String> {
        let debug_files = self.debug.get().into_iter().flat_map(|debug| &debug.looked_at);
        let debug_files = debug_files.filter_map(|(path, why)| match why {
            Rejected::TooLarge(why) => Some(format!("the debug file {} {why}", path.display())),
            _ => None,
        });
        let lines = self.lines_too_large().map(|why| {
            let name = &self.name;
            format!("file and line are left out: the debug information of {name} {why}")
        });
        let unnamed = self.symbols.get().and_then(|symbols| symbols.unnamed_left_out);
        let unnamed = unnamed.map(|why| {
            format!("the functions of {} without a name are left out: {why}", self.name)
        });
        let parts = self.too_large().map(|why| why.to_string()).into_iter().chain(unnamed);
        parts.chain(debug_files).chain(lines).collect()
    }

    /// Returns why some functions lack file and line despite debug information.
    fn lines_too_large(&self) -> Option<TooLarge> {
        match *self.lines.lock().unwrap_or_else(PoisonError::into_inner) {
            LineTable::TooLarge(why) => Some(why),
            _ => None,
        }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.open_path).unwrap()
    }

    /// Returns its functions by address, one for each address.
    pub fn functions(&self) -> &[Function] {
        &self.symbols().functions
    }

    /// Returns the function that starts at an address.
    #[cfg(test)]
    pub(crate) fn function_at(&self, address: u64) -> Option<&Function> {
        let functions = self.functions();
        let found = functions.binary_search_by_key(&address, |function| function.address);
        found.ok().map(|at| &functions[at])
    }

    /// Returns the contents of its symbol tables, including what cannot be traced.
    pub(crate) fn symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| {
            let _look = self.source.budget().look();
            let debug = self.is_stripped().then(|| self.debug_file());
            let debug = debug.and_then(DebugFile::source);
            Symbols::read(&self.source, &self.layout, debug, self.is_named_by_address)
        })
    }

    /// Returns the separate debug file, which is searched once.
    pub(crate) fn debug_file(&self) -> &DebugFile {
        self.debug.get_or_init(|| {
            let budget = self.source.budget();
            let _look = budget.look();
            let find =
                || debug_files::find(&self.source, &self.layout, &self.path, &self.open_path);
            budget.try_optional(find, |found| {
                found.looked_at.iter().any(|(_, why)| matches!(why, Rejected::TooLarge(_)))
            })
        })
    }

    /// Returns its USDT probes, with all sites of a name together.
    pub(crate) fn usdt_probes(&self) -> &[UsdtProbe] {
        &self.usdt_notes().probes
    }

    /// Returns the addresses of these variables, as far as the symbol tables contain them.
    pub fn variables(&self, names: &BTreeSet<&str>) -> HashMap<String, u64> {
        let _look = self.source.budget().look();
        usdt_variables::addresses(&self.source, names)
    }

    /// Returns the number of USDT notes that could not be read.
    pub(crate) fn broken_usdt_notes(&self) -> usize {
        self.usdt_notes().broken
    }

    fn usdt_notes(&self) -> &UsdtNotes {
        self.usdt.get_or_init(|| match self.layout.section(".note.stapsdt") {
            Some(_) => {
                let _look = self.source.budget().look();
                usdt::read(&self.source, &self.layout)
            }
            None => UsdtNotes::default(),
        })
    }

    /// Returns its markers. Naming nameless ones may read symbols and debug information.
    pub(crate) fn markers(&self) -> &Markers {
        self.markers.get_or_init(|| match markers::are_in(&self.layout) {
            true => {
                let _look = self.source.budget().look();
                markers::read(&self.source, &self.layout, |at| self.function_name_around(at))
            }
            false => Markers::default(),
        })
    }

    /// Returns file and line of an address. The first call reads the debug information.
    pub(crate) fn source_line(&self, address: u64) -> Option<SourceLine> {
        self.with_lines(|lines| lines.find(address))
    }

    pub(super) fn with_lines<T>(&self, ask: impl FnOnce(&Lines) -> Option<T>) -> Option<T> {
        let budget = self.source.budget();
        let _look = budget.look();
        let start = own_time();
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = &mut *lines;
        let (found, refused) = budget.watch(|| {
            if matches!(lines, LineTable::Unread) {
                *lines = self.read_lines();
            }
            let LineTable::Read { lines: known, memory, .. } = lines else { return None };
            let before = budget.used();
            let found = known.as_deref().and_then(ask);
            *memory += budget.used() - before;
            found
        });
        let LineTable::Read { memory, time, .. } = lines else { return None };
        *time += own_time().saturating_sub(start);
        if let Some(why) = refused {
            budget.release(*memory); // Later requests would otherwise be refused as well.
            budget.release_time(*time);
            *lines = LineTable::TooLarge(why);
            return None;
        }
        found
    }

    fn read_lines(&self) -> LineTable {
        let section = self.layout.section(".debug_line").or(self.layout.section(".zdebug_line"));
        let source = match section {
            Some(_) => Some(&self.source),
            None => self.debug_file().source(),
        };
        let Some(source) = source else {
            return LineTable::Read { lines: None, memory: 0, time: Duration::ZERO };
        };
        // The headers stay, whatever becomes of the lines.
        let file = elf::parse(source);
        let before = source.budget().used();
        let lines = file.ok().and_then(|file| Lines::read(source, &file)).map(Box::new);
        LineTable::Read { lines, memory: source.budget().used() - before, time: Duration::ZERO }
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Traits {
    fn read(source: &Source, layout: &ElfLayout, name: &str) -> Result<Self, ElfError> {
        let mut traits = Self {
            go: [".gopclntab", ".note.go.buildid", ".go.buildinfo"]
                .iter()
                .any(|section| layout.section(section).is_some()),
            symtab: layout.section(".symtab").is_some(),
            unwinder: None,
        };
        // The names are searched as bytes: imports and definitions count alike.
        for strings in [".dynstr", ".strtab"] {
            let Some(section) = layout.section(strings).filter(|section| section.in_file) else {
                continue;
            };
            let range = section.offset..section.offset.saturating_add(section.size());
            let scan = || {
                source.scan(range.clone(), LONGEST_UNWINDER, |_, part| {
                    traits.unwinder = traits.unwinder.or_else(|| names_unwinder(part));
                    match traits.unwinder {
                        Some(_) => ControlFlow::Break(()),
                        None => ControlFlow::Continue(()),
                    }
                })
            };
            let (read, refused) = source.budget().watch(scan);
            if let Some(why) = refused {
                return Err(why.into());
            }
            if read.is_err() || range.end > source.length() {
                return Err(ElfError::Broken(format!("{strings} is not in the file")));
            }
        }
        // A stripped program can contain a nameless unwinder. Only its cleanup tables show that.
        // libc has such tables for thread cancellation alone.
        const CLEANUPS: &str = ".gcc_except_table";
        let is_libc = name.starts_with("libc.so") || name.starts_with("libc-2.");
        if !traits.symtab && !is_libc && layout.section(CLEANUPS).is_some() {
            traits.unwinder.get_or_insert(CLEANUPS);
        }
        Ok(traits)
    }
}

/// At least the length of each name below and what follows it.
const LONGEST_UNWINDER: usize = 64;

/// Returns a name in a table of names that only code with exceptions or panics needs.
fn names_unwinder(strings: &[u8]) -> Option<&'static str> {
    const NAMES: [&str; 8] = [
        "_Unwind_RaiseException",
        "_Unwind_Resume",
        "_Unwind_Resume_or_Rethrow",
        "_Unwind_ForcedUnwind",
        "__cxa_throw",
        "__cxa_rethrow",
        "__gxx_personality_v0",
        "rust_eh_personality",
    ];
    let ends = |tail: &[u8]| matches!(tail.first(), Some(0 | b'@') | None);
    NAMES.into_iter().find(|name| {
        let mut found = memchr::memmem::find_iter(strings, name.as_bytes());
        found.any(|at| ends(&strings[at + name.len()..]))
    })
}

#[cfg(test)]
mod tests;
