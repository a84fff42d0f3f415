//! Finds the source function of inlined code. A symbol table knows only the function around it.

use super::lines::{Lines, Reader, text};
use super::types::{DEEPEST, DebugTypes, EntryAt};
use crate::target::names::demangle;
use crate::target::read::budget::{Budget, TooLarge};
use gimli::{AttributeValue, DebuggingInformationEntry, UnitOffset, UnitRef};
use std::collections::HashMap;
use std::ops::Range;

/// Inlined code of a unit.
#[derive(Default)]
pub(crate) struct Inlined {
    /// Sorted by begin. Stretches are nested, so the last one around an address is the innermost.
    stretches: Vec<Stretch>,
    scopes: Vec<Scope>,
    /// The innermost scope of each function that has one.
    scope_of: HashMap<UnitOffset, usize>,
}

struct Stretch {
    begin: u64,
    end: u64,
    /// The largest end of this stretch and those before it.
    reach: u64,
    function: UnitOffset,
}

/// A namespace or class.
struct Scope {
    entry: UnitOffset,
    around: Option<usize>,
}

/// Limit for one unit. Sane units have far fewer.
const MOST_STRETCHES: usize = 1 << 22;
/// Limits for one function: stretches that are looked at, and names.
const MOST_WITHIN: usize = 1 << 14;
const MOST_NAMED: usize = 16;
/// Bytes that a stretch, a scope or a function in a scope takes.
const PART: u64 = 64;

impl Lines {
    /// Returns the name of the innermost inlined function at an address.
    pub(crate) fn inlined_function(&self, address: u64) -> Option<String> {
        self.budget.check().ok()?;
        self.units_at(address).find_map(|unit| {
            let inlined = self.inlined(unit);
            self.name(EntryAt { unit, offset: inlined.at(address)? })
        })
    }

    /// Returns the name and an address of the first inlined function with a name that matches.
    pub(crate) fn inlined_like(&self, matches: impl Fn(&str) -> bool) -> Option<(String, u64)> {
        (0..self.units.len()).find_map(|unit| {
            self.inlined(unit).stretches.iter().find_map(|stretch| {
                self.budget.check().ok()?;
                let name = self.name(EntryAt { unit, offset: stretch.function })?;
                matches(&name).then_some((name, stretch.begin))
            })
        })
    }

    /// Returns the names of functions with inlined code at these addresses, those with the most code
    /// first. The code of one counts with what is inlined into it.
    pub(crate) fn inlined_into(&self, code: &Range<u64>) -> Vec<String> {
        let of = |unit: usize| {
            let mut sizes: HashMap<UnitOffset, u64> = HashMap::new();
            for stretch in self.inlined(unit).within(code).take(MOST_WITHIN) {
                let size = sizes.entry(stretch.function).or_default();
                *size = size.saturating_add(stretch.end - stretch.begin);
            }
            (!sizes.is_empty()).then_some((unit, sizes))
        };
        let Some((unit, sizes)) = self.units_at(code.start).find_map(of) else {
            return Vec::new();
        };
        let mut all: Vec<(u64, UnitOffset)> =
            sizes.into_iter().map(|(function, size)| (size, function)).collect();
        all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.0.cmp(&b.1.0)));
        let mut names: Vec<String> = Vec::new();
        for (_, offset) in all.into_iter().take(MOST_NAMED) {
            if self.budget.check().is_err() {
                break;
            }
            let name = self.name(EntryAt { unit, offset });
            names.extend(name.filter(|name| !names.contains(name)));
        }
        names
    }

    fn inlined(&self, unit: usize) -> &Inlined {
        let unit = &self.units[unit];
        unit.inlined.get_or_init(|| {
            // A partial result is not kept: see `Object::with_lines`.
            Inlined::read(unit.unit.unit_ref(&self.dwarf), &self.budget).unwrap_or_default()
        })
    }

    /// Follows an entry to those that declare it, until one has a name.
    fn name(&self, at: EntryAt) -> Option<String> {
        let mut plain = None;
        for (at, entry) in DebugTypes(self).completed(at) {
            let unit = self.units[at.unit].unit.unit_ref(&self.dwarf);
            // The debug information has a name also where the demangler does not know the linker's.
            if let Some(mangled) = linkage_name(unit, &entry)
                && let name = demangle::short(&mangled)
                && (name != mangled || !mangled.starts_with("_Z"))
            {
                return Some(name);
            }
            let own = entry.attr_value(gimli::DW_AT_name).and_then(|it| text(unit, it));
            plain = own.map(|name| self.inlined(at.unit).path(unit, at.offset, name)).or(plain);
        }
        plain
    }

    /// Returns the entry that an attribute of an entry in this unit refers to.
    pub(crate) fn referred(&self, unit: usize, value: AttributeValue<Reader>) -> Option<EntryAt> {
        match value {
            AttributeValue::UnitRef(offset) => Some(EntryAt { unit, offset }),
            AttributeValue::DebugInfoRef(next) => {
                let after = self.units.partition_point(|unit| {
                    unit.unit.header.debug_info_offset().is_some_and(|start| start <= next)
                });
                let unit = after.checked_sub(1)?;
                let offset = next.to_unit_offset(&self.units[unit].unit.header)?;
                Some(EntryAt { unit, offset })
            }
            _ => None,
        }
    }
}

impl Inlined {
    fn read(unit: UnitRef<'_, Reader>, budget: &Budget) -> Result<Self, TooLarge> {
        let mut inlined = Self::default();
        // Scopes around the entry, with their depths.
        let mut around: Vec<(isize, usize)> = Vec::new();
        let mut left = MOST_STRETCHES;
        let mut entries = unit.entries();
        let mut turns = 0u32;
        while let Ok(Some(entry)) = entries.next_dfs() {
            turns += 1;
            // An entry may have thousands of attributes.
            if turns.is_multiple_of(16) {
                budget.check()?;
            }
            around.truncate(around.partition_point(|(depth, _)| *depth < entry.depth()));
            let innermost = around.last().map(|(_, scope)| *scope);
            match entry.tag() {
                gimli::DW_TAG_namespace
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_union_type
                | gimli::DW_TAG_enumeration_type => {
                    budget.charge(PART)?;
                    around.push((entry.depth(), inlined.scopes.len()));
                    inlined.scopes.push(Scope { entry: entry.offset(), around: innermost });
                }
                gimli::DW_TAG_subprogram => {
                    budget.charge(PART)?;
                    inlined.scope_of.extend(innermost.map(|scope| (entry.offset(), scope)));
                }
                gimli::DW_TAG_inlined_subroutine => inlined.add(unit, entry, &mut left, budget)?,
                _ => {}
            }
        }
        inlined.stretches.sort_by_key(|stretch| stretch.begin);
        let mut reach = 0;
        for stretch in &mut inlined.stretches {
            reach = reach.max(stretch.end);
            stretch.reach = reach;
        }
        Ok(inlined)
    }

    fn add(
        &mut self,
        unit: UnitRef<'_, Reader>,
        entry: &DebuggingInformationEntry<Reader>,
        left: &mut usize,
        budget: &Budget,
    ) -> Result<(), TooLarge> {
        let Ok(mut ranges) = unit.die_ranges(entry) else { return Ok(()) };
        while *left > 0
            && let Ok(Some(range)) = ranges.next()
        {
            *left -= 1;
            let (begin, end, function) = (range.begin, range.end, entry.offset());
            if begin < end {
                budget.charge(PART)?;
                self.stretches.push(Stretch { begin, end, reach: end, function });
            }
        }
        Ok(())
    }

    /// Prefixes a function's name with its namespaces and classes.
    fn path(&self, unit: UnitRef<'_, Reader>, function: UnitOffset, name: String) -> String {
        let innermost = self.scope_of.get(&function).copied();
        let scopes = std::iter::successors(innermost, |scope| self.scopes[*scope].around);
        scopes.take(DEEPEST).fold(name, |path, scope| {
            let entry = unit.entry(self.scopes[scope].entry).ok();
            let name = entry.and_then(|entry| text(unit, entry.attr_value(gimli::DW_AT_name)?));
            format!("{}::{path}", name.as_deref().unwrap_or("(anonymous namespace)"))
        })
    }

    /// Returns the stretches that begin at these addresses.
    fn within(&self, code: &Range<u64>) -> impl Iterator<Item = &Stretch> {
        let before = self.stretches.partition_point(|stretch| stretch.begin < code.start);
        let end = code.end;
        self.stretches[before..].iter().take_while(move |stretch| stretch.begin < end)
    }

    fn at(&self, address: u64) -> Option<UnitOffset> {
        let after = self.stretches.partition_point(|stretch| stretch.begin <= address);
        let near = self.stretches[..after].iter().rev();
        let mut near = near.take_while(|stretch| address < stretch.reach);
        near.find(|stretch| address < stretch.end).map(|stretch| stretch.function)
    }
}

fn linkage_name(
    unit: UnitRef<'_, Reader>,
    entry: &DebuggingInformationEntry<Reader>,
) -> Option<String> {
    let names = [gimli::DW_AT_linkage_name, gimli::DW_AT_MIPS_linkage_name];
    text(unit, names.into_iter().find_map(|name| entry.attr_value(name))?)
}

#[cfg(test)]
mod tests {
    use super::super::lines::Lines;
    use crate::target::elf;
    use crate::target::fixtures::compile;
    use crate::target::object::Object;

    /// Checks the inlined functions at the addresses in the program's `places` section.
    #[track_caller]
    fn check(compiler: &str, extension: &str, source: &str, expected: &[Option<&str>]) {
        let built = compile(compiler, extension, source);
        let object = built.object();
        let file = elf::parse(object.source()).unwrap();
        let lines = Lines::read(object.source(), &file).unwrap();
        let names: Vec<_> =
            places(&object).into_iter().map(|at| lines.inlined_function(at)).collect();
        let names: Vec<_> = names.iter().map(Option::as_deref).collect();
        assert_eq!(names, expected, "{compiler}");
        for name in expected.iter().flatten() {
            let found = lines.inlined_like(|other| other == *name).expect("it is found by name");
            assert_eq!(found.0, *name);
        }
        assert_eq!(lines.inlined_like(|name| name == "nobody"), None);
    }

    fn places(object: &Object) -> Vec<u64> {
        let section = object.layout().section("places").unwrap();
        let (start, size) = (section.offset, section.addresses.end - section.addresses.start);
        let bytes = &object.bytes()[start as usize..(start + size) as usize];
        let (fields, rest) = bytes.as_chunks::<4>();
        assert!(rest.is_empty());
        let addresses = (section.addresses.start..).step_by(4);
        let distances = fields.iter().map(|field| i64::from(i32::from_le_bytes(*field)));
        addresses.zip(distances).map(|(at, distance)| at.wrapping_add_signed(distance)).collect()
    }

    const C: &str = r#"
        #define PLACE __asm__ volatile("990: nop\n.pushsection places,\"a\"\n.4byte 990b - .\n.popsection")
        #define INLINE static inline __attribute__((always_inline))
        INLINE int inner(int x) { PLACE; return x + 1; }
        INLINE int outer(int x) { PLACE; return inner(x) * 3; }
        int main(int c, char **v) { PLACE; return outer(c); }
    "#;

    const CPP: &str = r#"
        #define PLACE __asm__ volatile("990: nop\n.pushsection places,\"a\"\n.4byte 990b - .\n.popsection")
        #define INLINE inline __attribute__((always_inline))
        namespace ns {
            static INLINE int plain(int x) { PLACE; return x * 3; }
            struct S { INLINE int method(int x) { PLACE; return x * 5; } };
            namespace { INLINE int hidden(int x) { PLACE; return x * 7; } }
            template <class T> INLINE T generic(T x) { PLACE; return x * 9; }
        }
        int main(int c, char **v) {
            c = ns::plain(c);
            c = ns::S().method(c);
            c = ns::hidden(c);
            return ns::generic<long>(c);
        }
    "#;

    // The linker drops unreferenced data, except with flag "R".
    const RUST: &str = r#"
        macro_rules! place { () => { unsafe { std::arch::asm!(
            "990: nop", ".pushsection places,\"aR\"", ".4byte 990b - .", ".popsection"
        ) } } }
        struct W(u64);
        impl W {
            #[inline(always)]
            fn method(&self) -> u64 { place!(); self.0 * 3 }
        }
        #[inline(always)]
        fn generic<T: Into<u64>>(x: T) -> u64 { place!(); x.into() * 7 }
        fn main() { println!("{}", generic(W(std::env::args().count() as u64).method())); }
    "#;

    #[test]
    fn names_what_a_function_holds() {
        let held = |compiler: &str| {
            let built = compile(compiler, "c", C);
            let object = built.object();
            let main = object.functions().iter().find(|it| it.raw() == "main").expect("a function");
            object.inlined_into(main)
        };
        assert_eq!(held("gcc -g -O1"), ["outer", "inner"], "the one with more code is first");
        assert_eq!(held("gcc -O1"), [""; 0], "nothing without debug information");
    }

    #[test]
    fn names_inlined_functions() {
        for compiler in ["gcc -g -O1", "gcc -gdwarf-4 -O2", "gcc -g -O1 -flto"] {
            check(compiler, "c", C, &[None, Some("outer"), Some("inner")]);
        }
        let expected = [
            "ns::plain",
            "ns::S::method",
            "ns::(anonymous namespace)::hidden",
            "ns::generic<long>",
        ];
        check("g++ -g -O1", "cpp", CPP, &expected.map(Some));
        let rustc = "rustc -g -O --crate-name program -C symbol-mangling-version=v0";
        let expected = ["<program::W>::method", "program::generic::<u64>"];
        check(rustc, "rs", RUST, &expected.map(Some));
    }
}
