//! One ELF object as code: its instructions, its functions, and the bytes that the loader puts at
//! an address.
//!
//! Everything is read once per object and borrowed from the file's bytes. Instructions are decoded
//! later, one function at a time, so a large binary costs only what is selected in it.

pub(crate) mod balance;
pub(crate) mod extent;
pub(crate) mod flow;
pub(crate) mod functions;
mod incoming;
pub(crate) mod landing;
pub(crate) mod references;
pub(crate) mod slot;
pub(crate) mod stacks;
pub(crate) mod switches;

use crate::target::elf::frames::{FrameEntry, FrameTable, Start};
use crate::target::elf::tables::{self, NamedSymbols};
use crate::target::elf::{self as target_elf, ElfError, ElfFile};
use crate::target::place::code::stacks::{Place, StackSwitch, Unsearched};
use crate::target::place::guards::names::finds_unwind_tables;
use crate::target::read::budget::{Budget, TooLarge};
use crate::target::read::source::Source;
use ctrace_core::ranges::Ranges;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};
use object::elf;
use object::read::elf::ProgramHeader;
use object::{LittleEndian, Object, ObjectSection, SectionFlags};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;
use thiserror::Error;

/// The reason why an object cannot be analysed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlaceError {
    #[error("it {0}")]
    NotElf(ElfError),
    #[error("nothing in it is loaded as code")]
    NoCode,
    #[error("it {0}")]
    TooLarge(#[from] TooLarge),
}

/// A loaded piece of the file.
#[derive(Clone, Debug)]
pub(crate) struct Segment<'data> {
    address: u64,
    offset: u64,
    /// Bytes in the file.
    size: u64,
    executable: bool,
    /// Read when the first of them is needed.
    bytes: OnceLock<&'data [u8]>,
}

/// A symbol's facts about the code at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) address: u64,
    pub(crate) end: u64,
    pub(crate) is_part: bool,
}

/// The code of one ELF object.
#[derive(Debug)]
pub struct CodeMap<'data> {
    source: &'data Source,
    segments: Vec<Segment<'data>>,
    /// Sections of code, without the linker's stubs. Empty where there are no section headers.
    text: Ranges,
    stubs: Ranges,
    got: Ranges,
    frames: FrameTable<'data>,
    symbols: Vec<Known>,
    /// Ascending: global symbols that do not say what they are.
    labels: Vec<u64>,
    /// Ascending: where near jumps and calls lead into the middle of another function.
    far_targets: OnceLock<Result<Vec<u64>, TooLarge>>,
    imports: HashMap<u64, &'data str>,
    is_go: bool,
    has_unwinder: bool,
    may_contain_libraries: bool,
    switches_stacks: bool,
}

impl<'data> CodeMap<'data> {
    /// Reads an ELF file. Broken unwind tables or symbols are used as far as they are readable.
    pub fn parse(source: &'data Source) -> Result<Self, PlaceError> {
        let _look = source.budget().look();
        match source.budget().watch(|| Self::read(source)) {
            (Ok(_), Some(why)) => Err(why.into()),
            (map, _) => map,
        }
    }

    /// Reads the code of an object, with the names of its functions.
    pub(crate) fn of(object: &'data crate::target::object::Object) -> Result<Self, PlaceError> {
        let mut map = Self::parse(object.source())?;
        map.learn(object.functions().iter().map(|it| (it.address, it.size, it.raw())));
        Ok(map)
    }

    fn read(source: &'data Source) -> Result<Self, PlaceError> {
        let file = target_elf::parse(source).map_err(PlaceError::NotElf)?;
        let segments = segments(&file, source.length());
        if !segments.iter().any(|segment| segment.executable && segment.size > 0) {
            return Err(PlaceError::NoCode);
        }
        let sections = Sections::read(&file);
        let frames = FrameTable::read(&file, source, &segments_reader(source, &segments))?;
        let (all, dynamic) =
            (NamedSymbols::all(source, &file), NamedSymbols::dynamic(source, &file));
        let mut map = Self {
            source,
            segments,
            text: Ranges::new(sections.text),
            stubs: Ranges::new(sections.stubs),
            got: Ranges::new(sections.got),
            frames,
            symbols: Vec::new(),
            labels: Vec::new(),
            far_targets: OnceLock::new(),
            imports: imports(&file, dynamic, source.budget())?,
            is_go: sections.is_go,
            has_unwinder: false,
            may_contain_libraries: false,
            switches_stacks: false,
        };
        let is_static = map.imports.is_empty();
        let (mut has_unwinder, mut switches_stacks, mut labels) = (false, false, Vec::new());
        source.budget().charge((all.symbols.len() + dynamic.symbols.len()) as u64 * KNOWN)?;
        map.learn(all.named().chain(dynamic.named()).filter_map(|(symbol, name)| {
            has_unwinder |= is_unwinder(name);
            // The C library defines these and does not use them.
            switches_stacks |=
                (is_static || tables::is_undefined(symbol)) && stacks::switch(name).is_some();
            let (address, size, is_code) = tables::facts(symbol);
            if tables::is_global_label(symbol) {
                labels.push(address);
            }
            is_code.then_some((address, size, name))
        }));
        // A static program contains its unwinder without importing it, and may have lost its names.
        map.has_unwinder = has_unwinder || (is_static && map.frames.have_landing_pads());
        let imports = |is_it: fn(&str) -> bool| map.imports.values().any(|name| is_it(name));
        let contains_unwinder = imports(finds_unwind_tables) && !imports(is_unwinder);
        map.may_contain_libraries = is_static || contains_unwinder;
        map.switches_stacks = switches_stacks;
        labels.sort_unstable();
        map.labels = labels;
        Ok(map)
    }

    /// Returns how an object switches stacks, by its symbols and its code. An unreadable file may
    /// do anything: the kernel runs files that we cannot read.
    #[must_use]
    pub fn stack_switch(source: &Source) -> Option<StackSwitch> {
        let _look = source.budget().look();
        let look = || {
            let Ok(file) = target_elf::parse(source) else { return Err(Unsearched::Unreadable) };
            let segments = segments(&file, source.length());
            let frames = || FrameTable::read(&file, source, &segments_reader(source, &segments));
            stacks::find(&file, source, &code_of(&segments), frames)
        };
        let (found, refused) = source.budget().watch(look);
        // A refused read proves nothing.
        let refused = refused.map(|why| StackSwitch::Unsearched(why.into()));
        found.unwrap_or_else(|why| Some(StackSwitch::Unsearched(why))).or(refused)
    }

    pub(crate) fn stubs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.stubs.iter()
    }

    pub(crate) fn budget(&self) -> &Budget {
        self.source.budget()
    }

    /// Adds function symbols from elsewhere, such as a separate debug file.
    pub fn learn<'name>(&mut self, symbols: impl IntoIterator<Item = (u64, u64, &'name str)>) {
        self.symbols.extend(symbols.into_iter().map(|(address, size, name)| Known {
            address,
            end: address.saturating_add(size),
            is_part: crate::target::place::deny::is_part_name(name),
        }));
        self.symbols.sort_unstable_by_key(|known| (known.address, known.end, known.is_part));
        self.symbols.dedup_by_key(|known| (known.address, known.end));
    }

    /// Returns whether the Go compiler built the object. Go's stacks move.
    #[must_use]
    pub(crate) fn is_go(&self) -> bool {
        self.is_go
    }

    /// Returns whether the object imports or contains an unwinder (`_Unwind_RaiseException`…).
    #[must_use]
    pub fn has_unwinder(&self) -> bool {
        self.has_unwinder
    }

    /// Returns whether its symbols show that the object switches stacks.
    #[must_use]
    pub(crate) fn switches_stacks(&self) -> bool {
        self.switches_stacks
    }

    /// Returns the file offset of the byte at `address`.
    #[must_use]
    pub(crate) fn file_offset(&self, address: u64) -> Option<u64> {
        let segment = self.segment(address)?;
        Some(address - segment.address + segment.offset)
    }

    /// Returns the file's bytes from `address` to the end of its segment.
    #[must_use]
    pub(crate) fn bytes(&self, address: u64) -> Option<&'data [u8]> {
        let segment = self.segment(address)?;
        segment.bytes(self.source).get(usize::try_from(address - segment.address).ok()?..)
    }

    pub(crate) fn is_code(&self, address: u64) -> bool {
        let loaded = self.segment(address).is_some_and(|segment| segment.executable);
        loaded && (self.text.is_empty() || self.text.contains(address) || self.is_stub(address))
    }

    /// Returns whether `address` lies in a procedure linkage table.
    pub(crate) fn is_stub(&self, address: u64) -> bool {
        self.stubs.contains(address)
    }

    /// Returns whether it may contain functions that others have in libraries: those of libc, as it
    /// imports nothing, or an unwinder's, as it finds unwind tables and imports no unwinder.
    pub(crate) fn may_contain_libraries(&self) -> bool {
        self.may_contain_libraries
    }

    pub(crate) fn is_got(&self, address: u64) -> bool {
        self.got.contains(address)
    }

    /// Returns the imported symbol whose address the loader writes at `slot`.
    pub(crate) fn import(&self, slot: u64) -> Option<&'data str> {
        self.imports.get(&slot).copied()
    }

    /// Returns the imported function behind a linker's stub or a slot of its table.
    pub(crate) fn import_behind(&self, target: u64) -> Option<&'data str> {
        self.import(self.slot_behind(target)?)
    }

    /// Returns the slot through which a linker's stub jumps, or `target` if the loader writes a symbol's
    /// address there.
    pub(crate) fn slot_behind(&self, target: u64) -> Option<u64> {
        if self.imports.contains_key(&target) {
            return Some(target);
        }
        if !self.is_stub(target) {
            return None;
        }
        let bytes = self.bytes(target)?;
        let mut decoder = Decoder::with_ip(64, bytes, target, DecoderOptions::NONE);
        let mut first = decoder.iter().take(2);
        let jump = first.find(|i| i.flow_control() == FlowControl::IndirectBranch)?;
        jump.is_ip_rel_memory_operand().then(|| jump.ip_rel_memory_address())
    }

    pub(crate) fn frames(&self) -> &FrameTable<'data> {
        &self.frames
    }

    /// Returns the function, or the part of one, that contains `address`.
    pub(crate) fn frame(&self, address: u64) -> Option<&FrameEntry> {
        self.frames.containing(address)
    }

    /// Returns whether the frame is a real function: entered by calls, at its first byte.
    pub(crate) fn is_function(&self, frame: &FrameEntry) -> bool {
        frame.first == Start::Function && !self.is_named_part(frame.start)
    }

    fn is_named_part(&self, address: u64) -> bool {
        let mut here = self.symbols_at(address).peekable();
        here.peek().is_some() && here.all(|known| known.is_part)
    }

    /// Returns the symbols that start at `address`.
    pub(crate) fn symbols_at(&self, address: u64) -> impl Iterator<Item = &Known> {
        let from = self.symbols.partition_point(|known| known.address < address);
        self.symbols[from..].iter().take_while(move |known| known.address == address)
    }

    /// Returns whether a global symbol without a type is at `address`: assembly often says no more of its
    /// functions.
    pub(crate) fn has_label(&self, address: u64) -> bool {
        self.labels.binary_search(&address).is_ok()
    }

    /// Returns whether there is only padding from `address` to the next function, or to the end of
    /// the code.
    pub(crate) fn is_padding(&self, address: u64) -> bool {
        /// Far more instructions than compilers and linkers pad with.
        const MOST: usize = 64;
        let mut at = address;
        for _ in 0..MOST {
            let is_known = self.frame(at).is_some() || self.symbols_at(at).next().is_some();
            if is_known || !self.is_code(at) {
                return true;
            }
            let bytes = self.bytes(at).unwrap_or_default();
            let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
            if !matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) {
                return false;
            }
            at = instruction.next_ip();
        }
        false
    }

    /// Returns a symbol that covers `address` without starting there.
    pub(crate) fn symbol_around(&self, address: u64) -> Option<&Known> {
        let to = self.symbols.partition_point(|known| known.address < address);
        self.symbols[..to].iter().rev().take(16).find(|known| known.end > address)
    }

    /// Returns address and size of every function symbol. Aliases of one size are listed once.
    pub fn symbols(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.symbols.iter().map(|known| (known.address, known.end - known.address))
    }

    fn segment(&self, address: u64) -> Option<&Segment<'data>> {
        find_segment(&self.segments, address)
    }
}

/// Bytes that a symbol takes.
const KNOWN: u64 = 2 * size_of::<Known>() as u64;
/// Bytes that an import takes.
const IMPORT: u64 = 64;

impl<'data> Segment<'data> {
    fn bytes(&self, source: &'data Source) -> &'data [u8] {
        self.bytes.get_or_init(|| source.part(self.offset, self.size).unwrap_or_default())
    }
}

/// Returns the first segment with an address. There are few: see [`target_elf::parse`].
fn find_segment<'a, 'data>(
    segments: &'a [Segment<'data>],
    address: u64,
) -> Option<&'a Segment<'data>> {
    segments.iter().find(|segment| {
        address.checked_sub(segment.address).is_some_and(|past| past < segment.size)
    })
}

fn code_of(segments: &[Segment<'_>]) -> Vec<Place> {
    let code = segments.iter().filter(|segment| segment.executable);
    code.map(|it| (it.address, it.offset..it.offset + it.size)).collect()
}

pub(crate) fn segments_reader<'a, 'data>(
    source: &'data Source,
    segments: &'a [Segment<'data>],
) -> impl Fn(u64) -> Option<&'data [u8]> + use<'a, 'data> {
    |address| {
        let segment = find_segment(segments, address)?;
        segment.bytes(source).get(usize::try_from(address - segment.address).ok()?..)
    }
}

pub(crate) fn segments<'data>(file: &ElfFile<'data>, length: u64) -> Vec<Segment<'data>> {
    let endian = LittleEndian;
    let loaded = file.elf_program_headers().iter();
    let mut segments: Vec<_> = loaded
        .filter(|header| header.p_type(endian) == elf::PT_LOAD)
        .filter_map(|header| {
            let offset = header.p_offset(endian).min(length);
            let size = header.p_filesz(endian).min(length - offset);
            let executable = header.p_flags(endian).0 & elf::PF_X.0 != 0;
            let address = header.p_vaddr(endian);
            address.checked_add(size)?;
            Some(Segment { address, offset, size, executable, bytes: OnceLock::new() })
        })
        .collect();
    segments.sort_by_key(|segment| segment.address);
    segments
}

#[derive(Default)]
struct Sections {
    text: Vec<Range<u64>>,
    stubs: Vec<Range<u64>>,
    got: Vec<Range<u64>>,
    is_go: bool,
}

impl Sections {
    fn read(file: &ElfFile<'_>) -> Self {
        let code = elf::SHF_EXECINSTR.0 | elf::SHF_ALLOC.0;
        let mut found = Self::default();
        for section in file.sections() {
            let Ok(name) = section.name() else { continue };
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
            let from = section.address();
            let range = from..from.saturating_add(section.size());
            if name == ".got" || name.starts_with(".got.") {
                found.got.push(range);
            } else if name == ".plt" || name.starts_with(".plt.") || name == ".iplt" {
                found.stubs.push(range);
            } else if sh_flags.0 & code == code {
                found.text.push(range);
            }
            found.is_go |= matches!(name, ".gopclntab" | ".go.buildinfo" | ".note.go.buildid");
        }
        found
    }
}

fn imports<'data>(
    file: &ElfFile<'data>,
    dynamic: NamedSymbols<'data>,
    budget: &Budget,
) -> Result<HashMap<u64, &'data str>, TooLarge> {
    let mut ticker = budget.ticker();
    let mut imports = HashMap::new();
    for (slot, relocation) in file.dynamic_relocations().into_iter().flatten() {
        ticker.tick()?;
        let object::RelocationTarget::Symbol(index) = relocation.target() else { continue };
        let name = dynamic.get(index).and_then(|symbol| dynamic.name(symbol));
        if let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) {
            budget.charge(IMPORT)?;
            imports.insert(slot, name);
        }
    }
    Ok(imports)
}

fn is_unwinder(name: &str) -> bool {
    const UNWINDERS: [&str; 4] =
        ["_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_ForcedUnwind", "_Unwind_Backtrace"];
    name.starts_with("_U") && UNWINDERS.iter().any(|unwinder| name.starts_with(unwinder))
}
