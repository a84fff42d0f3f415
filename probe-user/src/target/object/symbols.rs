//! Reads the functions of an object from its symbol tables and those of its debug file.
//!
//! There is one function for each address: libc has four names at one `malloc`, and a probe sits at
//! an address, not at a name. Names are demangled on demand, because a C++ program has hundreds of
//! thousands and a user asks for a few.

use super::code::Code;
use super::parts::Parts;
use super::unnamed::{self, LeftOut};
use crate::target::elf::go_functions::{GoFunction, GoFunctions};
use crate::target::elf::tables::NamedSymbols;
use crate::target::elf::{self, ElfLayout};
use crate::target::names::by_address;
use crate::target::names::demangle::{self, without_version};
use crate::target::read::budget::{Budget, TooLarge};
use crate::target::read::source::{LONGEST_TEXT, Source};
use ctrace_core::ranges::Ranges;
use object::elf as constants;
use object::read::elf::Sym as _;
use object::{LittleEndian, Object as _, ObjectSection as _};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A function of an object.
#[derive(Clone, Debug)]
pub struct Function {
    /// The address in the object's headers, before any load bias.
    pub address: u64,
    /// In bytes. Without a symbol size, it reaches to the next function or the section's end.
    pub size: u64,
    pub file_offset: u64,
    /// All names at this address without versions, mangled, the best one first.
    raws: Box<[Arc<str>]>,
    names: OnceLock<Names>,
    full: OnceLock<Arc<str>>,
    /// The object's budget: a demangled name may be far longer than its symbol.
    budget: Arc<Budget>,
}

#[derive(Clone, Debug, Default)]
struct Names {
    short: Arc<str>,
    aliases: Box<[Arc<str>]>,
}

/// The contents of an object's symbol tables.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// In the order of their addresses.
    pub functions: Vec<Function>,
    /// Functions that choose their implementation at load (IFUNC), by name. The symbol is that of
    /// the chooser, which runs once, and is no place to trace the function.
    pub chosen_at_load: Vec<Box<str>>,
    /// The reason why the table could not be read.
    pub broken: Option<String>,
    /// Set if there are more than the object's budget allows. Then there are none.
    pub too_large: Option<TooLarge>,
    /// The reason why functions without a name are left out.
    pub(super) unnamed_left_out: Option<LeftOut>,
    parts: OnceLock<Parts>,
}

/// One symbol, before those at one address are merged.
struct Entry<'data> {
    address: u64,
    size: u64,
    name: &'data [u8],
    /// Lower is better.
    rank: u8,
    /// Underscores in front of the name, 0 for a mangled one.
    underscores: u16,
}

impl Function {
    /// Returns the symbol as in the file, without its version.
    pub fn raw(&self) -> &str {
        self.raws.first().map_or("", |raw| raw)
    }

    /// Returns the same to keep.
    pub(crate) fn symbol(&self) -> Arc<str> {
        self.raws.first().map_or_else(Arc::default, Arc::clone)
    }

    /// Returns all symbols at this address, the best one first.
    pub(crate) fn raws(&self) -> impl Iterator<Item = &str> {
        self.raws.iter().map(|raw| &**raw)
    }

    /// Returns the short name: demangled, without hash, parameters and version.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.names().short
    }

    /// Returns the demangled name with its parameters or hash, or the short name if it has none.
    pub(crate) fn full_name(&self) -> &Arc<str> {
        self.full.get_or_init(|| {
            let short = self.name();
            let full = self.raws.first().map(|raw| self.demangled(raw, demangle::full));
            full.filter(|full| full != short).unwrap_or_else(|| Arc::clone(short))
        })
    }

    /// Returns its other names, demangled.
    pub(crate) fn aliases(&self) -> &[Arc<str>] {
        &self.names().aliases
    }

    /// Returns whether its file has no name for it.
    pub(crate) fn is_named_by_address(&self) -> bool {
        by_address::is_name(self.raw(), self.address)
    }

    pub(crate) fn addresses(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.size)
    }

    fn names(&self) -> &Names {
        self.names.get_or_init(|| {
            let mut raws = self.raws.iter();
            let Some(first) = raws.next() else { return Names::default() };
            let short = self.demangled(first, demangle::short);
            let mut seen = HashSet::from([Arc::clone(&short)]);
            let aliases = raws.map(|raw| self.demangled(raw, demangle::short));
            let aliases = aliases.filter(|name| seen.insert(Arc::clone(name))).collect();
            Names { short, aliases }
        })
    }

    /// Demangles a name. Returns it unchanged where it is not mangled or the budget has no room.
    fn demangled(&self, raw: &Arc<str>, demangle: fn(&str) -> String) -> Arc<str> {
        let name = demangle(raw);
        match name != **raw && self.budget.has_room(name.len() as u64) {
            true => name.into(),
            false => Arc::clone(raw),
        }
    }
}

impl Symbols {
    pub(crate) fn parts(&self) -> &Parts {
        self.parts.get_or_init(|| Parts::of(&self.functions))
    }

    /// Reads the tables of an object, and of its debug file where there is one. A stripped program of Go
    /// has a table of Go's. Another one has functions without a name, if it is to have names `by_address`.
    pub(crate) fn read(
        source: &Source,
        layout: &ElfLayout,
        debug: Option<&Source>,
        by_address: bool,
    ) -> Self {
        Self::try_read(source, layout, debug, by_address)
            .unwrap_or_else(|why| Self { too_large: Some(why), ..Self::default() })
    }

    fn try_read(
        source: &Source,
        layout: &ElfLayout,
        debug: Option<&Source>,
        by_address: bool,
    ) -> Result<Self, TooLarge> {
        let has_no_symbols = layout.section(".symtab").is_none() && debug.is_none();
        let mut symbols = Self::default();
        let code = Code::new(layout);
        let mut entries = Vec::new();
        let mut text = symbols.collect(source, &code, 0, &mut entries)?;
        if let Some(debug) = debug {
            // A prelinked object has other addresses than its debug file.
            let start = |layout: &ElfLayout| {
                layout.segments.iter().find(|s| s.executable).map(|s| s.addresses.start)
            };
            let theirs = ElfLayout::parse(debug, true).ok().and_then(|layout| start(&layout));
            let shift = start(layout).zip(theirs).map_or(0, |(our, their)| our.wrapping_sub(their));
            text += symbols.collect(debug, &code, shift, &mut entries)?;
        }
        let go = || watched(source.budget(), || GoFunctions::read(source, layout));
        let mut unnamed = Vec::new();
        if has_no_symbols && let Some(table) = go()? {
            text += table.text();
            collect_go(&table, &code, &mut entries, source.budget())?;
        } else if has_no_symbols && by_address {
            unnamed = symbols.unnamed(source, layout, &code, &entries);
        }
        entries.extend(unnamed.iter().map(|(addresses, name)| Entry {
            address: addresses.start,
            size: addresses.end - addresses.start,
            name: name.as_bytes(),
            rank: 1,
            underscores: 0,
        }));
        text += unnamed.iter().map(|(_, name)| name.len() as u64).sum::<u64>();
        symbols.chosen_at_load.sort();
        symbols.chosen_at_load.dedup();
        let mut text_left = text * OVERLAP + LONGEST_TEXT;
        symbols.functions = merge(entries, &code, layout, source.budget(), &mut text_left)?;
        if text_left == 0 {
            symbols.broken = Some("its names are longer than the tables that they are in".into());
        }
        Ok(symbols)
    }

    /// Returns the functions that are in none of the known ones, with names by their addresses.
    fn unnamed(
        &mut self,
        source: &Source,
        layout: &ElfLayout,
        code: &Code,
        known: &[Entry<'_>],
    ) -> Vec<(Range<u64>, String)> {
        let known = known.iter().map(|it| it.address..it.address.saturating_add(it.size.max(1)));
        let known = Ranges::new(known.collect());
        let found = unnamed::read(source, layout, code, &known);
        let found = found.unwrap_or_else(|why| {
            self.unnamed_left_out = Some(why);
            Vec::new()
        });
        found.into_iter().map(|it| (it.clone(), by_address::name(it.start))).collect()
    }

    /// Collects symbols, and returns the length of the name tables.
    fn collect<'data>(
        &mut self,
        source: &'data Source,
        code: &Code,
        shift: u64,
        entries: &mut Vec<Entry<'data>>,
    ) -> Result<u64, TooLarge> {
        let budget = source.budget();
        match elf::parse(source) {
            Ok(file) => {
                let all = watched(budget, || NamedSymbols::all(source, &file))?;
                self.collect_table(all, &[], code, shift, entries, budget)?;
                let dynamic = watched(budget, || NamedSymbols::dynamic(source, &file))?;
                let versions = || file.section_by_name(".gnu.version").and_then(|s| s.data().ok());
                let versions = watched(budget, versions)?.unwrap_or_default();
                self.collect_table(dynamic, versions, code, shift, entries, budget)?;
                Ok(all.text() + dynamic.text())
            }
            Err(elf::ElfError::TooLarge(why)) => Err(why),
            Err(error) => {
                self.broken = Some(error.to_string());
                Ok(0)
            }
        }
    }

    fn collect_table<'data>(
        &mut self,
        table: NamedSymbols<'data>,
        versions: &[u8],
        code: &Code,
        shift: u64,
        entries: &mut Vec<Entry<'data>>,
        budget: &Budget,
    ) -> Result<(), TooLarge> {
        let endian = LittleEndian;
        // They are dropped when the symbols are merged.
        drop(budget.lend(((entries.len() + table.symbols.len()) * size_of::<Entry<'_>>()) as u64)?);
        let mut ticker = budget.ticker();
        for (number, symbol) in table.symbols.iter().enumerate() {
            let kind = symbol.st_type();
            let is_choice = kind == constants::STT_GNU_IFUNC;
            if !(kind == constants::STT_FUNC || is_choice)
                || symbol.st_shndx(endian) == constants::SHN_UNDEF
            {
                continue;
            }
            ticker.tick()?;
            let address = symbol.st_value(endian).wrapping_add(shift);
            if code.section_of(address).is_none() {
                continue;
            }
            let Some(name) = table.name(symbol) else {
                self.broken = Some("a symbol's name lies outside the table of names".to_owned());
                continue;
            };
            // A version that new programs do not link with: `memcpy@GLIBC_2.2.5`.
            let mut is_old = versions.get(2 * number + 1).is_some_and(|high| high & 0x80 != 0);
            let versioned = name;
            let name = without_version(name);
            is_old |= versioned.len() > name.len() && !versioned[name.len()..].starts_with(b"@@");
            if name.is_empty() {
                continue;
            }
            if is_choice {
                budget.charge(name.len() as u64 + ALLOCATION)?;
                self.chosen_at_load.push(String::from_utf8_lossy(name).into());
                continue;
            }
            let rank = match symbol.st_bind() {
                _ if is_old => 2,
                // Weak names rank equal: libc's `puts` is weak, beside a global `_IO_puts`.
                constants::STB_GLOBAL | constants::STB_WEAK => 0,
                _ => 1,
            };
            let (size, underscores) = (symbol.st_size(endian), underscores(name));
            entries.push(Entry { address, size, name, rank, underscores });
        }
        Ok(())
    }
}

/// Adds the functions of Go's table.
fn collect_go<'data>(
    table: &GoFunctions<'data>,
    code: &Code,
    entries: &mut Vec<Entry<'data>>,
    budget: &Budget,
) -> Result<(), TooLarge> {
    drop(budget.lend(((entries.len() + table.most()) * size_of::<Entry<'_>>()) as u64)?);
    let mut ticker = budget.ticker();
    for index in 0..table.most() {
        ticker.tick()?;
        let Some(GoFunction { addresses, name }) = table.function(index) else { continue };
        if code.section_of(addresses.start).is_some() {
            let (address, size) = (addresses.start, addresses.end - addresses.start);
            entries.push(Entry { address, size, name, rank: 1, underscores: underscores(name) });
        }
    }
    Ok(())
}

/// Returns the result of `read`, unless it was refused memory or time.
pub(super) fn watched<T>(budget: &Budget, read: impl FnOnce() -> T) -> Result<T, TooLarge> {
    let (found, refused) = budget.watch(read);
    refused.map_or(Ok(found), Err)
}

/// A linker lets a name be the end of another, so all names together may exceed their table.
const OVERLAP: u64 = 4;
/// Bytes of overhead of a small allocation.
const ALLOCATION: u64 = 48;

fn merge(
    mut entries: Vec<Entry<'_>>,
    code: &Code,
    layout: &ElfLayout,
    budget: &Arc<Budget>,
    text_left: &mut u64,
) -> Result<Vec<Function>, TooLarge> {
    let _entries = budget.lend((entries.capacity() * size_of::<Entry<'_>>()) as u64)?;
    entries.sort_unstable_by(|a, b| a.address.cmp(&b.address).then_with(|| preference(a, b)));
    let mut ticker = budget.ticker();
    let mut functions: Vec<Function> = Vec::new();
    let mut groups = entries.chunk_by(|a, b| a.address == b.address).peekable();
    while let Some(group) = groups.next() {
        ticker.tick()?;
        let address = group[0].address;
        let (Some(section), Some(file_offset)) =
            (code.section_of(address), layout.file_offset(address))
        else {
            continue;
        };
        let given = group.iter().map(|entry| entry.size).find(|size| *size != 0);
        let next = groups.peek().map_or(section.end, |group| group[0].address).min(section.end);
        let size = given.unwrap_or(next - address).min(section.end - address);
        let raws = names(group, budget, text_left)?;
        if raws.is_empty() {
            continue;
        }
        functions.push(Function {
            address,
            size,
            file_offset,
            raws,
            names: OnceLock::new(),
            full: OnceLock::new(),
            budget: Arc::clone(budget),
        });
    }
    functions.shrink_to_fit();
    Ok(functions)
}

/// Returns the names of the symbols at one address, each once. They may be most of a large table
/// and overlap in the file. Those beyond the limit of text are left out.
fn names(
    group: &[Entry<'_>],
    budget: &Budget,
    text_left: &mut u64,
) -> Result<Box<[Arc<str>]>, TooLarge> {
    let mut seen = HashSet::new();
    let mut memory = size_of::<Function>() as u64;
    let mut names: Vec<Arc<str>> = Vec::with_capacity(1);
    for name in group.chunk_by(|a, b| is_same(a.name, b.name)).map(|same| same[0].name) {
        let length = name.len() as u64;
        if length > *text_left {
            *text_left = 0;
        } else if group.len() == 1 || seen.insert(name) {
            *text_left -= length;
            memory += length + ALLOCATION;
            // Checked before there are too many of them.
            if memory > LONGEST_TEXT {
                budget.charge(std::mem::take(&mut memory))?;
            }
            names.push(String::from_utf8_lossy(name).into());
        }
    }
    budget.charge(memory)?;
    Ok(names.into())
}

/// Orders names, the best first: global, then local, then those for old programs only. Then come
/// fewer leading underscores, then the shorter name.
fn preference(a: &Entry<'_>, b: &Entry<'_>) -> Ordering {
    let order = |entry: &Entry<'_>| (entry.rank, entry.underscores, entry.name.len());
    order(a).cmp(&order(b)).then_with(|| match is_same(a.name, b.name) {
        true => Ordering::Equal,
        false => a.name.cmp(b.name),
    })
}

/// Compares names. Thousands of symbols may share one long name, which is not compared to itself.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    std::ptr::eq(a, b) || a == b
}

fn underscores(name: &[u8]) -> u16 {
    let is_mangled = name.starts_with(b"_Z") || name.starts_with(b"_R");
    let count = name.iter().take_while(|byte| **byte == b'_').count();
    u16::try_from(if is_mangled { 0 } else { count }).unwrap_or(u16::MAX)
}

#[cfg(test)]
#[path = "symbols_tests.rs"]
mod tests;
