//! The functions of a unit's debug information by address, and the places where they are declared.
//!
//! The line table has no such place: where a function begins with the code of one that was inlined,
//! the first row is a line of that one, perhaps in another file. But the entries of a unit
//! can be far larger than its line table. So they are read for places up to a limit, beyond which the
//! line table must do.

use super::lines::{CompileUnit, Lines, SourceLine};
use super::types::{DebugTypes, EntryAt};
use gimli::{AttributeValue, UnitOffset};
use std::collections::HashMap;

/// The functions of a unit, by address. `None`: there are several of one address, and nothing tells
/// which is meant.
pub(super) type FunctionEntries = HashMap<u64, Option<UnitOffset>>;

/// Bytes that an entry of [`FunctionEntries`] takes.
const ENTRY: u64 = 64;

/// Bytes of the entries of units that are read for the places of an object's functions: a part of what
/// the object's budget has time for.
pub(super) const MOST_ENTRIES: u64 = 128 << 20;

impl Lines {
    /// Returns the place of a function: where it is declared, or else what the line table says of its
    /// first byte.
    pub(crate) fn of_function(&self, address: u64) -> Option<SourceLine> {
        self.declared(address).or_else(|| self.find(address))
    }

    fn declared(&self, address: u64) -> Option<SourceLine> {
        self.budget.check().ok()?;
        let units = self.units_at(address).filter(|unit| self.may_read_functions(*unit));
        let at = self.entries_in(units, address).next()??;
        // A definition has only what differs from its declaration.
        let types = DebugTypes(self);
        let (unit, AttributeValue::FileIndex(file)) =
            types.attribute(at, gimli::DW_AT_decl_file)?
        else {
            return None;
        };
        let (_, line) = types.attribute(at, gimli::DW_AT_decl_line)?;
        self.place(unit, file, u32::try_from(line.udata_value()?).ok())
    }

    /// Returns the functions that begin at an address, as units tell; `None` for several of one unit.
    pub(super) fn entries_at(&self, address: u64) -> impl Iterator<Item = Option<EntryAt>> {
        self.entries_in(self.units_at(address), address)
    }

    /// Returns the same of these units.
    fn entries_in(
        &self,
        units: impl Iterator<Item = usize>,
        address: u64,
    ) -> impl Iterator<Item = Option<EntryAt>> {
        units.filter_map(move |unit| {
            let offset = *self.functions(unit).get(&address)?;
            Some(offset.map(|offset| EntryAt { unit, offset }))
        })
    }

    /// Returns whether the functions of a unit are known, or small enough to be read for a place. Then
    /// the unit counts as read.
    fn may_read_functions(&self, unit: usize) -> bool {
        let CompileUnit { unit, functions, .. } = &self.units[unit];
        if functions.get().is_some() {
            return true;
        }
        let left = self.entries_left.get().checked_sub(unit.header.unit_length() as u64);
        left.inspect(|left| self.entries_left.set(*left)).is_some()
    }

    fn functions(&self, unit: usize) -> &FunctionEntries {
        self.units[unit].functions.get_or_init(|| {
            let mut functions = HashMap::new();
            // A partial result is not kept: see `Object::with_lines`.
            let _ = self.read_functions(unit, &mut functions);
            functions
        })
    }

    /// Reads the functions of a unit. Entries of other kinds are passed over, not parsed: they are
    /// most of a unit. `None`: the budget is used up, or what follows is broken.
    fn read_functions(&self, unit: usize, functions: &mut FunctionEntries) -> Option<()> {
        let unit = self.units[unit].unit.unit_ref(&self.dwarf);
        let mut entries = unit.entries_raw(None).ok()?;
        let mut ticker = self.budget.ticker();
        while !entries.is_empty() {
            ticker.tick().ok()?;
            let offset = entries.next_offset();
            let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
            entries.skip_attributes(abbreviation.attributes()).ok()?;
            if abbreviation.tag() != gimli::DW_TAG_subprogram {
                continue;
            }
            // The first range has the entry, the others the cold parts.
            let entry = unit.entry(offset).ok()?;
            let Ok(mut ranges) = unit.die_ranges(&entry) else { continue };
            let Ok(Some(range)) = ranges.next() else { continue };
            if range.begin == 0 {
                continue;
            }
            self.budget.charge(ENTRY).ok()?;
            let found = functions.entry(range.begin);
            found.and_modify(|known| *known = None).or_insert(Some(offset));
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use crate::target::fixtures::compile;
    use crate::target::{debug_info::lines::Lines, elf};

    /// Checks the lines of the functions whose names contain these.
    #[track_caller]
    fn check(compiler: &str, extension: &str, source: &str, lines: [(&str, u32); 2]) {
        let built = compile(compiler, extension, source);
        let object = built.object();
        for (name, line) in lines {
            let mut functions = object.functions().iter();
            let function = functions.find(|function| function.name().contains(name)).unwrap();
            let found = object.line_of(function).map(|found| (found.file.to_string(), found.line));
            let file = format!("input.{extension}");
            assert_eq!(found, Some((file, Some(line))), "{compiler} {name}");
        }
    }

    #[test]
    fn the_line_is_the_functions_own_and_not_that_of_inlined_code() {
        let rust = "
            use std::hint::black_box;
            struct Kept(Vec<u64>);
            impl Kept {
                #[inline(never)]
                fn largest(&self) -> u64 { self.0.iter().copied().max().unwrap_or_default() }
            }
            #[inline(always)]
            fn seventh(of: u64) -> u64 { black_box(of / 7) }
            #[inline(never)]
            fn begins_with_another(of: u64) -> u64 {
                seventh(of) + 1
            }
            fn main() {
                let kept = Kept(std::env::args().map(|a| a.len() as u64).collect());
                println!(\"{}\", begins_with_another(kept.largest()));
            }
        ";
        for flags in ["-g", "-g -O", "-g -C opt-level=3 -C lto=fat"] {
            let rustc = format!("rustc {flags} --crate-name program");
            check(&rustc, "rs", rust, [("begins_with_another", 11), ("largest", 6)]);
        }
        let cpp = "
            #include <algorithm>
            #include <vector>
            static inline __attribute__((always_inline)) int third(int of) {
                return of / 3;
            }
            __attribute__((noinline)) int begins_with_another(int of) {
                return third(of);
            }
            struct Shop {
                std::vector<int> stock;
                int most() const;
            };
            __attribute__((noinline))
            int Shop::most() const { return *std::max_element(stock.begin(), stock.end()); }
            int main(int c, char **) { return begins_with_another(c) + Shop{{c, 2}}.most(); }
        ";
        for compiler in ["g++ -g", "g++ -g -O2", "g++ -gdwarf-4 -O2", "clang++ -g -O2"] {
            check(compiler, "cpp", cpp, [("begins_with_another", 7), ("Shop::most", 15)]);
        }
    }

    #[test]
    fn the_line_table_tells_what_takes_too_much_to_find() {
        let source = "
            struct Kept(Vec<u64>);
            impl Kept {
                #[inline(never)]
                fn largest(&self) -> u64 { self.0.iter().copied().max().unwrap_or_default() }
            }
            fn main() {
                println!(\"{}\", Kept(std::env::args().map(|a| a.len() as u64).collect()).largest());
            }
        ";
        let built = compile("rustc -g -C opt-level=3 --crate-name program", "rs", source);
        let object = built.object();
        let largest = object.functions().iter().find(|f| f.name().contains("largest")).unwrap();
        let lines = || Lines::read(object.source(), &elf::parse(object.source()).unwrap()).unwrap();
        let of_function = |lines: &Lines| lines.of_function(largest.address).unwrap();
        let (unlimited, limited) = (lines(), lines());
        let unit = unlimited.units_at(largest.address).next().unwrap();
        let length = unlimited.units[unit].unit.header.unit_length() as u64;
        limited.entries_left.set(length);
        assert_eq!(of_function(&limited), of_function(&unlimited));
        // A unit is read only once.
        assert_eq!(limited.entries_left.get(), 0);
        assert_eq!(of_function(&limited).line, Some(5));
        let limited = lines();
        limited.entries_left.set(length - 1);
        assert_eq!(Some(of_function(&limited)), limited.find(largest.address));
        assert_ne!(of_function(&limited), of_function(&unlimited));
    }
}
