//! The parameters of a function in debug information, and where the System V ABI puts each when the
//! function is entered.

use super::lines::Lines;
use super::texts::{is_rust_text, is_view};
use super::types::{DEEPEST, DebugTypes, EntryAt, Shape};
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
    /// A vector register, which no program can read, alone or beside a register for integers; or a
    /// register and the stack.
    Elsewhere,
    /// It depends on a type that is not described, or whose way is not known.
    Unknown,
}

/// The language of a unit, as far as it says how parameters are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    C,
    Cxx,
    Rust,
}

/// The registers that a value takes, or how it is passed without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// So many for integers, and so many vector registers. If there are fewer, it is on the stack.
    Registers([usize; 2]),
    /// Two numbers, each of which finds its own place.
    Words,
    /// Bytes on the stack.
    Memory(u64),
    Address,
}

impl Lines {
    /// Returns the parameters of the function at an address; `None` if it is not described, or does
    /// not follow the ABI.
    pub(crate) fn parameters(&self, function: u64) -> Option<Vec<Parameter>> {
        let at = self.function_at(function)?;
        let types = DebugTypes(self);
        let language = self.language(at.unit)?;
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
        let mut places = Places::default();
        if types.attribute(at, gimli::DW_AT_type).is_some() {
            let of = types.type_of(at);
            match of.and_then(|of| class(types, of, types.shape(of)?, language, true)) {
                // The address of a result in memory comes first.
                Some(Class::Memory(_) | Class::Address) => places.used[0] = 1,
                Some(Class::Registers(_) | Class::Words) => {}
                None => places.is_lost = true,
            }
        }
        let parameters = own.into_iter().map(|at| {
            let of = at.and_then(|at| types.type_of(at));
            let name = at.and_then(|at| types.name(at)).unwrap_or_default();
            places.is_lost |= NOT_PASSED.contains(&name.as_str());
            let class = of.and_then(|of| class(types, of, types.shape(of)?, language, false));
            let place = match places.give(class) {
                ParameterPlace::Elsewhere => ParameterPlace::Elsewhere,
                place if at.is_some_and(|at| self.confirms(function, at, place)) => place,
                _ => ParameterPlace::Unknown,
            };
            Parameter { name, of, place }
        });
        Some(parameters.collect())
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

    pub(crate) fn function_at(&self, address: u64) -> Option<EntryAt> {
        self.budget.check().ok()?;
        let mut found = self.entries_at(address);
        let at = found.next()??;
        if found.next().is_some() {
            return None;
        }
        // LLVM marks functions whose parameters it has changed so.
        match DebugTypes(self).attribute(at, gimli::DW_AT_calling_convention) {
            Some((_, AttributeValue::CallingConvention(how))) => {
                let usual = [gimli::DW_CC_normal, gimli::DW_CC_program];
                usual.contains(&how).then_some(at)
            }
            _ => Some(at),
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

/// Returns how a value of this type is passed, or returned as a result. `None` where that depends on
/// more than is looked at here: the places of all further parameters do, too.
fn class(
    types: DebugTypes<'_>,
    of: EntryAt,
    shape: Shape,
    language: Language,
    is_result: bool,
) -> Option<Class> {
    match shape {
        Shape::Float { .. } => Some(Class::Registers([0, 1])),
        Shape::Integer { .. }
        | Shape::Enumeration { .. }
        | Shape::Bool
        | Shape::Char
        | Shape::Pointer { .. } => Some(Class::Registers([1, 0])),
        Shape::Structure { at, bytes } => match language {
            Language::Rust if is_rust_text(types, at) => Some(Class::Words),
            // Rust promises nothing. A large result is where C has it, and a small one is not.
            Language::Rust if is_result => {
                Some(if bytes > 16 { Class::Address } else { Class::Registers([1, 0]) })
            }
            Language::Rust => None,
            Language::Cxx => match types.attribute(at, gimli::DW_AT_calling_convention) {
                Some((_, AttributeValue::CallingConvention(how))) => match how {
                    gimli::DW_CC_pass_by_reference => Some(Class::Address),
                    gimli::DW_CC_pass_by_value => by_value(types, of, bytes, false),
                    _ => None,
                },
                _ if is_view(types, at) => by_value(types, of, bytes, false),
                // gcc does not say.
                _ if has_destructor(types, at) => Some(Class::Address),
                _ => by_value(types, of, bytes, true),
            },
            Language::C => by_value(types, of, bytes, false),
        },
        Shape::Array { .. } | Shape::Other { .. } => None,
    }
}

/// Returns whether a class of C++ has a destructor of its own: then its address is passed. DWARF 4 does
/// not tell those that the compiler makes.
fn has_destructor(types: DebugTypes<'_>, class: EntryAt) -> bool {
    let mut has_one = false;
    types.children(class, |at, entry| {
        has_one |= entry.tag() == gimli::DW_TAG_subprogram
            && entry.attr_value(gimli::DW_AT_defaulted).is_none()
            && types.name(at).is_some_and(|name| name.starts_with('~'));
    });
    has_one && types.version(class) >= 5
}

/// Returns whether a class may be one that is not copied byte by byte: it has constructors, a
/// destructor or virtual functions.
fn may_be_special(types: DebugTypes<'_>, class: EntryAt) -> bool {
    let own = types.name(class).unwrap_or_default();
    let own = own.split('<').next().unwrap_or_default();
    let mut is_special = false;
    types.children(class, |at, entry| {
        if entry.tag() == gimli::DW_TAG_subprogram {
            let name = types.name(at).unwrap_or_default();
            let is_virtual = entry.attr_value(gimli::DW_AT_virtuality).is_some();
            is_special |= is_virtual || name.starts_with('~') || name == own;
        }
    });
    is_special
}

/// Returns how a structure is passed that is copied byte by byte. `is_unsure`: its members may forbid
/// that.
fn by_value(types: DebugTypes<'_>, of: EntryAt, bytes: u64, is_unsure: bool) -> Option<Class> {
    let mut words = [None; 2];
    let is_plain = classify(types, of, 0, &mut words, (is_unsure, 0));
    let count = |is_float| words.iter().filter(|word| **word == Some(is_float)).count();
    match bytes {
        _ if !is_plain => None,
        0 => None,
        1..=16 => Some(Class::Registers([count(false), count(true)])),
        _ => Some(Class::Memory(bytes)),
    }
}

/// Marks the words of a structure: true for floating-point numbers alone. Returns false if it has
/// anything but aligned numbers and pointers of up to 8 bytes: then other rules hold.
fn classify(
    types: DebugTypes<'_>,
    of: EntryAt,
    offset: u64,
    words: &mut [Option<bool>; 2],
    (is_unsure, depth): (bool, usize),
) -> bool {
    let Some(shape) = types.shape(of).filter(|_| depth < DEEPEST) else { return false };
    let deeper = (is_unsure, depth + 1);
    let bytes = types.bytes(shape);
    let mut mark = |is_float: bool| {
        if let Some(word) = words.get_mut((offset / 8) as usize) {
            *word = Some(word.unwrap_or(true) && is_float);
        }
        bytes > 0 && offset.is_multiple_of(bytes)
    };
    match shape {
        Shape::Structure { at, .. }
            if is_unsure && may_be_special(types, at) && !is_view(types, at) =>
        {
            false
        }
        Shape::Structure { at, .. } => {
            let mut is_plain = true;
            let is_whole = types.members(at, |member| {
                let from = offset.saturating_add(member.offset);
                is_plain &= match member.is_bit_field {
                    true => false,
                    false => classify(types, member.of, from, words, deeper),
                };
            });
            is_whole && is_plain
        }
        // Its elements may reach into the second word. Those of a vector have a register for all.
        Shape::Array { of: element, bytes } => {
            let each = types.shape(element).map_or(0, |shape| types.bytes(shape));
            let is_vector = types.attribute(of, gimli::DW_AT_GNU_vector).is_some();
            if each == 0 || bytes == 0 || is_vector {
                return false;
            }
            let elements = (bytes / each).min(16 / each + 1);
            (0..elements).all(|nth| {
                classify(types, element, offset.saturating_add(nth * each), words, deeper)
            })
        }
        Shape::Float { .. } => mark(true),
        Shape::Integer { .. }
        | Shape::Enumeration { .. }
        | Shape::Bool
        | Shape::Char
        | Shape::Pointer { .. } => mark(false),
        Shape::Other { .. } => false,
    }
}
