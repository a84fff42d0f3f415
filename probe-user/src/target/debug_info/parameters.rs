//! The parameters of a function in debug information, and where the System V ABI puts each when the
//! function is entered.

use super::classes::{Class, class};
use super::lines::Lines;
use super::order::drop_disordered;
use super::passed::Parts;
use super::stored::Stored;
use super::types::{DebugTypes, EntryAt, Shape};
use gimli::{AttributeValue, Reader as _};

/// Registers of integers and pointers, and vector registers.
const REGISTERS: [usize; 2] = [REGISTERS_OF_INTEGERS, 8];
const REGISTERS_OF_INTEGERS: usize = 6;
/// Slots of the stack that are given out. Further ones are not read.
const SLOTS: u64 = 64;
/// Entries that are there only if types are described.
const TELLING: [gimli::DwTag; 7] = [
    gimli::DW_TAG_base_type,
    gimli::DW_TAG_pointer_type,
    gimli::DW_TAG_structure_type,
    gimli::DW_TAG_class_type,
    gimli::DW_TAG_enumeration_type,
    gimli::DW_TAG_typedef,
    gimli::DW_TAG_formal_parameter,
];
/// Entries of a unit among which one of these is looked for. A unit has types among its first ones, if any.
const MOST_LOOKED_AT: usize = 1 << 16;
/// Names of the parameters that gcc adds to some constructors, and then does not pass.
const NOT_PASSED: [&str; 2] = ["__in_chrg", "__vtt_parm"];

/// A parameter.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    /// Empty if it has none.
    pub(crate) name: String,
    pub(crate) of: Option<EntryAt>,
    /// The place that the ABI gives it. `Unknown` if debug information says otherwise.
    pub(crate) place: ParameterPlace,
}

/// The place of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterPlace {
    /// The register of this number among those for integers and pointers.
    Register(u8),
    /// Memory to which this register points: the ABI passes an address.
    Behind(u8),
    /// 16 bytes in the register of this number and the next one.
    Pair(u8),
    /// 8 bytes or more on the stack, from the one with this number on.
    Stack(u8),
    /// Parts of it in several places, or some bytes of it alone.
    Parts(Parts),
    /// A vector register, which no program can read, alone or beside a register for integers; or a
    /// register and the stack.
    Elsewhere,
    /// It depends on a type that is not described, or whose way is not known.
    Unknown,
    /// Debug information names no place for it.
    Nowhere,
}

/// The language of a unit, as far as it says how parameters are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    C,
    Cxx,
    Rust,
}

impl Lines {
    /// Returns the parameters of the function at an address; `None` if it is not described, or does
    /// not follow the ABI. `has_others`: it also has parameters that are not described. `code`
    /// returns bytes of the program.
    pub(crate) fn parameters(
        &self,
        function: u64,
        has_others: bool,
        code: impl FnOnce(u64) -> Vec<u8>,
    ) -> Option<Vec<Parameter>> {
        let (at, is_changed) = self.described_at(function)?;
        let types = DebugTypes(self);
        let language = self.language(at.unit)?;
        let is_rust = language == Language::Rust;
        // Only places at the first instruction are sure then.
        let is_lost = has_others || is_changed;
        if is_lost && !is_rust {
            return None;
        }
        let stored = is_rust.then(|| Stored::read(code(function)));
        let mut own = Vec::new();
        types.children(at, |at, entry| match entry.tag() {
            gimli::DW_TAG_formal_parameter => own.push(Some(at)),
            // Its members are inside, and may be none.
            gimli::DW_TAG_GNU_formal_parameter_pack => own.push(None),
            _ => {}
        });
        if own.is_empty() && !self.describes_types(at) {
            return None;
        }
        let mut places = Places { is_lost, ..Places::default() };
        if types.attribute(at, gimli::DW_AT_type).is_some() {
            let of = types.type_of(at);
            match of.and_then(|of| class(types, of, types.shape(of)?, language, true)) {
                // The address of a result in memory comes first.
                Some(Class::Memory(_) | Class::Address) => places.used[0] = 1,
                Some(Class::Registers(_) | Class::Words) => {}
                None => places.is_lost = true,
            }
        }
        let mut are_stored = Vec::new();
        let parameters = own.into_iter().map(|at| {
            let (place, is_stored) =
                self.place_of(function, (at, language), &mut places, stored.as_ref());
            let of = at.and_then(|at| types.type_of(at));
            let name = at.and_then(|at| types.name(at)).unwrap_or_default();
            are_stored.push(is_stored);
            Parameter { name, of, place }
        });
        let mut parameters: Vec<_> = parameters.collect();
        if is_rust {
            drop_disordered(&mut parameters);
        }
        // LLVM may pass a member in place of a parameter. If the function gives it to another one first,
        // the store of that looks like a parameter's own.
        if is_changed && parameters.iter().any(|it| it.place.is_nowhere()) {
            for (parameter, _) in parameters.iter_mut().zip(are_stored).filter(|(_, is)| *is) {
                parameter.place = ParameterPlace::Unknown;
            }
        }
        Some(parameters)
    }

    /// Returns the place of a parameter behind those that have taken `places`, and whether a store to
    /// the frame tells it. Debug information of Rust tells it alone if it tells it for the first
    /// instruction, unless the ABI is known to pass the parameter elsewhere.
    fn place_of(
        &self,
        function: u64,
        (at, language): (Option<EntryAt>, Language),
        places: &mut Places,
        stored: Option<&Stored>,
    ) -> (ParameterPlace, bool) {
        let types = DebugTypes(self);
        let name = at.and_then(|at| types.name(at)).unwrap_or_default();
        places.is_lost |= NOT_PASSED.contains(&name.as_str());
        let of = at.and_then(|at| types.type_of(at));
        let shape = of.and_then(|of| types.shape(of));
        let given = places.give(of.and_then(|of| class(types, of, shape?, language, false)));
        let passed = || self.passed((function, at?), shape?, stored?);
        if let Some((place, is_stored)) = passed() {
            // It was given another value first.
            let is_other = !given.agrees(place);
            return (if is_other { ParameterPlace::Unknown } else { place }, is_stored);
        }
        let has_place = |at| types.attribute(at, gimli::DW_AT_location).is_some();
        let place = match (given, at) {
            (ParameterPlace::Elsewhere, _) => given,
            (_, Some(at)) if self.confirms(function, at, given) => given,
            (_, _) if stored.is_some() && matches!(shape, Some(Shape::Float { .. })) => {
                ParameterPlace::Elsewhere
            }
            (_, Some(at)) if !has_place(at) => ParameterPlace::Nowhere,
            _ => ParameterPlace::Unknown,
        };
        (place, false)
    }

    /// Returns the type of the result of the function at an address, and where it leaves it, as if that
    /// were its first parameter; `None` if it is not described.
    pub(crate) fn result_of(&self, function: u64) -> Option<Option<(EntryAt, ParameterPlace)>> {
        let at = self.function_at(function)?;
        let language = self.language(at.unit)?;
        let types = DebugTypes(self);
        let Some(of) = types.type_of(at) else { return self.describes_types(at).then_some(None) };
        let class = types.shape(of).and_then(|shape| class(types, of, shape, language, true));
        // It also returns the address of a result in memory.
        let place = Places::default().give(match class {
            Some(Class::Memory(_)) => Some(Class::Address),
            other => other,
        });
        Some(Some((of, place)))
    }

    /// Returns false if the unit of a function has lines and names of functions only (`-g1`, Rust's
    /// `debug = 1`): parameters and results are not described there.
    fn describes_types(&self, function: EntryAt) -> bool {
        let Some(of) = self.units.get(function.unit) else { return false };
        *of.describes_types.get_or_init(|| {
            let unit = of.unit.unit_ref(&self.dwarf);
            let mut entries = unit.entries();
            let mut ticker = self.budget.ticker();
            for nth in 0..MOST_LOOKED_AT {
                let Ok(Some(entry)) = entries.next_dfs() else { return false };
                // A unit without any type may still be whole. GCC says how it was called.
                if nth == 0
                    && let Some(producer) = entry.attr_value(gimli::DW_AT_producer)
                    && let Ok(producer) = unit.attr_string(producer)
                    && let Ok(producer) = producer.to_string_lossy()
                    && producer.starts_with("GNU ")
                {
                    return !producer.split(' ').any(|option| option == "-g1");
                }
                if TELLING.contains(&entry.tag()) {
                    return true;
                }
                if ticker.tick().is_err() {
                    return false;
                }
            }
            true
        })
    }

    /// Returns the function at an address, if it follows the ABI.
    pub(crate) fn function_at(&self, address: u64) -> Option<EntryAt> {
        self.described_at(address).filter(|(_, is_changed)| !is_changed).map(|(at, _)| at)
    }

    /// Returns the function at an address, and whether LLVM has changed its parameters or its result.
    pub(super) fn described_at(&self, address: u64) -> Option<(EntryAt, bool)> {
        self.budget.check().ok()?;
        let mut found = self.entries_at(address);
        let at = found.next()??;
        if found.next().is_some() {
            return None;
        }
        // LLVM marks those that it has changed so.
        match DebugTypes(self).attribute(at, gimli::DW_AT_calling_convention) {
            Some((_, AttributeValue::CallingConvention(how))) => {
                let usual = [gimli::DW_CC_normal, gimli::DW_CC_program];
                Some((at, !usual.contains(&how)))
            }
            _ => Some((at, false)),
        }
    }

    /// Returns the language of a unit, if its way to pass parameters is known.
    pub(super) fn language(&self, unit: usize) -> Option<Language> {
        let unit = self.units[unit].unit.unit_ref(&self.dwarf);
        let mut entries = unit.entries();
        let language = entries.next_dfs().ok()??.attr_value(gimli::DW_AT_language)?;
        let AttributeValue::Language(language) = language else { return None };
        match language {
            gimli::DW_LANG_C
            | gimli::DW_LANG_C89
            | gimli::DW_LANG_C99
            | gimli::DW_LANG_C11
            | gimli::DW_LANG_C17 => Some(Language::C),
            gimli::DW_LANG_C_plus_plus
            | gimli::DW_LANG_C_plus_plus_03
            | gimli::DW_LANG_C_plus_plus_11
            | gimli::DW_LANG_C_plus_plus_14
            | gimli::DW_LANG_C_plus_plus_17
            | gimli::DW_LANG_C_plus_plus_20 => Some(Language::Cxx),
            gimli::DW_LANG_Rust => Some(Language::Rust),
            _ => None,
        }
    }
}

/// The registers and slots that earlier parameters have taken.
#[derive(Default)]
struct Places {
    used: [usize; 2],
    slots: u64,
    /// True from the first parameter on whose type is unknown.
    is_lost: bool,
}

impl Places {
    fn give(&mut self, class: Option<Class>) -> ParameterPlace {
        let Some(class) = class.filter(|_| !self.is_lost && self.slots < SLOTS) else {
            self.is_lost = true;
            return ParameterPlace::Unknown;
        };
        match class {
            Class::Address if self.used[0] < REGISTERS[0] => {
                self.used[0] += 1;
                ParameterPlace::Behind(self.used[0] as u8 - 1)
            }
            // Its address is on the stack, and one more to follow.
            Class::Address => {
                self.slots += 1;
                ParameterPlace::Elsewhere
            }
            Class::Words => match self.used[0] + 1 {
                ..REGISTERS_OF_INTEGERS => self.give(Some(Class::Registers([2, 0]))),
                REGISTERS_OF_INTEGERS => {
                    (self.used[0], self.slots) = (REGISTERS_OF_INTEGERS, self.slots + 1);
                    ParameterPlace::Elsewhere
                }
                _ => self.on_stack(16),
            },
            Class::Registers(wanted) => {
                let is_free = |kind: usize| self.used[kind] + wanted[kind] <= REGISTERS[kind];
                if !(is_free(0) && is_free(1)) {
                    return self.on_stack(8 * (wanted[0] + wanted[1]) as u64);
                }
                let first = self.used[0] as u8;
                self.used = [self.used[0] + wanted[0], self.used[1] + wanted[1]];
                match wanted {
                    [1, 0] => ParameterPlace::Register(first),
                    [2, 0] => ParameterPlace::Pair(first),
                    _ => ParameterPlace::Elsewhere,
                }
            }
            Class::Memory(bytes) => self.on_stack(bytes),
        }
    }

    fn on_stack(&mut self, bytes: u64) -> ParameterPlace {
        let first = self.slots as u8;
        self.slots = self.slots.saturating_add(bytes.div_ceil(8)).min(SLOTS);
        ParameterPlace::Stack(first)
    }
}
