//! A symbol table with its names.
//!
//! The names come from the table of strings, read at once. Looking each up in the file takes
//! several times as long. Names may overlap, so copies of them must be counted.

use super::ElfFile;
use crate::target::read::source::{LONGEST_TEXT, Source};
use object::elf::{self, FileHeader64, Sym64};
use object::read::elf::{SectionHeader as _, Sym as _, SymbolTable};
use object::{LittleEndian, SymbolIndex};

pub(crate) type Symbol = Sym64<LittleEndian>;

/// The symbols of a section.
#[derive(Clone, Copy, Default)]
pub(crate) struct NamedSymbols<'data> {
    pub(crate) symbols: &'data [Symbol],
    strings: &'data [u8],
}

impl<'data> NamedSymbols<'data> {
    /// Returns `.symtab`, empty where there is none.
    pub(crate) fn all(source: &'data Source, file: &ElfFile<'data>) -> Self {
        Self::of(source, file, file.elf_symbol_table())
    }

    /// Returns `.dynsym`, empty where there is none.
    pub(crate) fn dynamic(source: &'data Source, file: &ElfFile<'data>) -> Self {
        Self::of(source, file, file.elf_dynamic_symbol_table())
    }

    fn of(
        source: &'data Source,
        file: &ElfFile<'data>,
        table: &SymbolTable<'data, FileHeader64<LittleEndian>, &'data Source>,
    ) -> Self {
        let strings = file.elf_section_table().section(table.string_section()).ok();
        let range = strings.and_then(|strings| strings.file_range(LittleEndian));
        let strings = range.and_then(|(offset, size)| source.part(offset, size));
        Self { symbols: table.symbols(), strings: strings.unwrap_or_default() }
    }

    /// Returns `None` where the name lies outside the table of strings or is too long.
    pub(crate) fn name(&self, symbol: &Symbol) -> Option<&'data [u8]> {
        let rest = self.strings.get(symbol.st_name(LittleEndian) as usize..)?;
        let rest = &rest[..rest.len().min(LONGEST_TEXT as usize)];
        Some(&rest[..memchr::memchr(0, rest)?])
    }

    /// Returns the summed length of all names.
    pub(crate) fn text(&self) -> u64 {
        self.strings.len() as u64
    }

    pub(crate) fn get(&self, index: SymbolIndex) -> Option<&'data Symbol> {
        self.symbols.get(index.0)
    }

    /// Returns symbols with their names, which may be empty. The first symbol of a table is none.
    pub(crate) fn named(self) -> impl Iterator<Item = (&'data Symbol, &'data str)> {
        let named = self.symbols.iter().skip(1).map(move |symbol| (symbol, self.name(symbol)));
        named.map(|(symbol, name)| {
            (symbol, name.and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default())
        })
    }
}

/// Returns address, size, and whether it is the definition of a function.
pub(crate) fn facts(symbol: &Symbol) -> (u64, u64, bool) {
    let is_function = matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC);
    let (address, size) = (symbol.st_value(LittleEndian), symbol.st_size(LittleEndian));
    (address, size, is_function && is_definition(symbol))
}

/// Returns whether it is the chooser of a function that has several implementations (IFUNC).
pub(crate) fn is_chosen_at_start(symbol: &Symbol) -> bool {
    symbol.st_type() == elf::STT_GNU_IFUNC
}

/// Returns whether it is a label that other files may use. Assembly often says no more of its
/// functions.
pub(crate) fn is_global_label(symbol: &Symbol) -> bool {
    let is_global = matches!(symbol.st_bind(), elf::STB_GLOBAL | elf::STB_WEAK);
    symbol.st_type() == elf::STT_NOTYPE && is_global && is_definition(symbol)
}

/// Returns whether it is in a section of this file.
pub(crate) fn is_definition(symbol: &Symbol) -> bool {
    let section = symbol.st_shndx(LittleEndian);
    !section.is_special() || section == elf::SHN_XINDEX
}

pub(crate) fn is_undefined(symbol: &Symbol) -> bool {
    symbol.st_shndx(LittleEndian) == elf::SHN_UNDEF
}
