//! Values by the names that the source gives them: a parameter, or a member of what it points to,
//! such as `req->method`.
//!
//! A program reads a register, or follows one pointer in a register to a number or a text. So a path
//! may follow one pointer, and a text at its end is one more.
//!
//! Texts are those that end with a 0, and those of `texts`, whose length is beside their address.

use super::abi::{Position, Type};
use super::debug_types::{DebugTypes, EntryAt, Shape};
use super::lines::Lines;
use super::object::Object;
use super::parameters::{Parameter, Place};
use super::symbols::Function;
use super::texts::{TextAt, text_at};
use ctrace_common::{Operand, ValueForm};
use ctrace_core::{function::is_word, values::Enumerator};
use std::{fmt, sync::Arc};

/// Names that an error lists, at most.
pub(super) const SHOWN: usize = 12;
/// Bytes of a name, at most.
const LONGEST_NAME: usize = 256;
/// Bytes of a register: those before the second half of what is in two.
const HALF: u64 = 8;
/// Members on a path, at most.
const LONGEST: usize = 16;

/// A parameter, and members that lead on from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    text: String,
    names: Vec<String>,
}

/// The source of a value, and what it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Typed {
    pub(crate) source: (Operand, ValueForm),
    pub(crate) of: Type,
    /// The names of its numbers, ascending, if it is an enumeration.
    pub(crate) names: Names,
}

pub(crate) type Names = Arc<[Arc<Enumerator>]>;

impl Typed {
    /// Makes one of a type whose numbers have no names.
    pub(crate) fn plain(source: (Operand, ValueForm), of: Type) -> Self {
        Self { source, of, names: Names::default() }
    }
}

/// The reason why a named value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoValue {
    #[error("no debug information says where it is; name a register and a type, such as 0:u64")]
    NotDescribed,
    #[error("the compiler has changed its parameters")]
    Changed,
    #[error(
        "debug information does not tell for sure where `{0}` is; name its register and type, such as \
         1:u64"
    )]
    Unknown(String),
    #[error("Go passes arguments in its own way; trace its functions without --where")]
    Go,
    #[error("it returns nothing")]
    Nothing,
    #[error("`{0}` is itself in registers: its members are not read")]
    InRegisters(String),
    #[error("it has no parameter `{name}`; {}", known(.there))]
    NoParameter { name: String, there: Vec<String> },
    #[error("`{of}` has no member `{name}`; {}", known(.there))]
    NoMember { of: String, name: String, there: Vec<String> },
    #[error("`{0}` is no structure and points to none")]
    NoStructure(String),
    #[error("`{of}` is a structure: name a member; {}", known(.there))]
    Structure { of: String, there: Vec<String> },
    #[error("`{0}` is in a vector register or in several registers, which are not read")]
    Elsewhere(String),
    #[error("`{0}` lies behind a second pointer, and only one is followed")]
    TooFar(String),
    #[error("`{0}` is a bit field, which is not read")]
    BitField(String),
    #[error("`{0}` has a type that is not read")]
    OtherType(String),
}

pub(super) fn known(there: &[String]) -> String {
    match there {
        [] => "there are none".to_owned(),
        _ => format!("there are {}", there.join(", ")),
    }
}

impl NamedPath {
    /// Parses `NAME`, `NAME->MEMBER` and `NAME.MEMBER`, with further members.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = text.replace("->", ".");
        let names: Vec<String> = plain.split('.').map(|name| name.trim().to_owned()).collect();
        let is_path = names.len() <= LONGEST && names.iter().all(|name| is_name(name));
        is_path.then(|| Self { text: text.to_owned(), names })
    }
}

impl fmt::Display for NamedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Object {
    /// Finds a value of a function, read as this type or as its own.
    pub(crate) fn named_value(
        &self,
        function: &Function,
        path: &NamedPath,
        of: Option<Type>,
    ) -> Result<Typed, NoValue> {
        if has_others(function) {
            return Err(NoValue::Changed);
        }
        let found = self.with_lines(|lines| {
            let parameters = lines.parameters(function.address)?;
            Some(find(lines, &parameters, path, of))
        });
        found.unwrap_or(Err(NoValue::NotDescribed))
    }

    /// Lists the parameters of a function with their types; none without debug information.
    pub(crate) fn parameters(&self, function: &Function) -> Vec<String> {
        if self.is_go() || has_others(function) {
            return Vec::new();
        }
        let listed = self.with_lines(|lines| {
            let parameters = lines.parameters(function.address)?;
            let text = |name: &String| {
                let path = NamedPath { text: name.clone(), names: vec![name.clone()] };
                match find(lines, &parameters, &path, None) {
                    Ok(typed) => format!("{name}: {}{}", typed.of, listed(&typed.names)),
                    Err(NoValue::Structure { .. }) => format!("{name}: a structure"),
                    Err(_) => format!("{name} (not read)"),
                }
            };
            let named = parameters.iter().map(|it| &it.name).filter(|name| is_name(name));
            Some(named.take(SHOWN).map(text).collect())
        });
        listed.unwrap_or_default()
    }

    /// Returns the type of a function's result, with the names of its numbers.
    pub(crate) fn result_type(&self, function: &Function) -> Result<(Type, Names), NoValue> {
        let found = self.with_lines(|lines| {
            let Some(of) = lines.result_of(function.address)? else {
                return Some(Err(NoValue::Nothing));
            };
            let types = DebugTypes(lines);
            let shape = types.shape(of);
            let of =
                shape.and_then(|shape| Some((own_type(types, shape)?, names_of(types, shape))));
            Some(of.ok_or_else(|| NoValue::OtherType("its result".to_owned())))
        });
        found.unwrap_or(Err(NoValue::NotDescribed))
    }
}

/// Returns whether gcc has changed the parameters of the function with this symbol, which it then
/// marks.
pub(crate) fn is_changed(symbol: &str) -> bool {
    [".isra.", ".constprop.", ".part."].iter().any(|mark| symbol.contains(mark))
}

/// Returns whether a function has other parameters than debug information lists: a closure of Rust has
/// one more, with what it captures, and a part of a coroutine only its frame.
fn has_others(function: &Function) -> bool {
    const CLOSURES: [&str; 2] = ["{closure", "{async"];
    const PARTS: [&str; 4] = [".resume", ".destroy", ".cleanup", ".actor"];
    is_changed(function.raw())
        || PARTS.iter().any(|part| function.raw().ends_with(part))
        || CLOSURES.iter().any(|mark| function.name().contains(mark))
}

fn find(
    lines: &Lines,
    parameters: &[Parameter],
    path: &NamedPath,
    of: Option<Type>,
) -> Result<Typed, NoValue> {
    let types = DebugTypes(lines);
    let (name, members) = path.names.split_first().ok_or(NoValue::NotDescribed)?;
    let there = || names(parameters.iter().map(|it| &it.name));
    let parameter = parameters.iter().find(|it| it.name == *name);
    let parameter =
        parameter.ok_or_else(|| NoValue::NoParameter { name: name.clone(), there: there() })?;
    let other_type = |so_far: &str| NoValue::OtherType(so_far.to_owned());
    let mut shape = parameter.of.and_then(|of| types.shape(of)).ok_or_else(|| other_type(name))?;
    // The second half of what is in two registers.
    let mut second = None;
    let mut operand = match parameter.place {
        Place::Pair(number) => {
            second = Some(Position::Register(number + 1).base());
            Position::Register(number).base()
        }
        Place::Register(number) => Position::Register(number).base(),
        Place::Behind(number) => Operand { memory: 1, ..Position::Register(number).base() },
        Place::Stack(slot) => Position::Stack(slot).base(),
        Place::Elsewhere => return Err(NoValue::Elsewhere(name.clone())),
        Place::Unknown => return Err(NoValue::Unknown(name.clone())),
    };
    let mut so_far = name.clone();
    for member in members {
        if let Shape::Pointer { to, .. } = shape {
            operand =
                behind(operand).ok_or_else(|| NoValue::TooFar(format!("{so_far}->{member}")))?;
            let to = to.and_then(|to| types.shape(to));
            shape = to.ok_or_else(|| NoValue::NoStructure(so_far.clone()))?;
        }
        let Shape::Structure { at, .. } = shape else {
            return Err(NoValue::NoStructure(so_far));
        };
        let Some(found) = types.member(at, member) else {
            let there = members_of(types, at);
            return Err(NoValue::NoMember { of: so_far, name: member.clone(), there });
        };
        so_far = format!("{so_far}.{member}");
        if found.is_bit_field {
            return Err(NoValue::BitField(so_far));
        }
        operand = part(operand, second.take(), found.offset)
            .ok_or_else(|| NoValue::InRegisters(name.clone()))?;
        shape = types.shape(found.of).ok_or_else(|| other_type(&so_far))?;
    }
    if let Shape::Pointer { to: Some(to), is_reference: true } = shape {
        operand = behind(operand).ok_or_else(|| NoValue::TooFar(so_far.clone()))?;
        shape = types.shape(to).ok_or_else(|| other_type(&so_far))?;
    }
    // A pointer to an object with a text is one to the text.
    if let Shape::Pointer { to: Some(to), .. } = shape
        && operand.memory == 0
        && let Some(Shape::Structure { at, .. }) = types.shape(to)
        && of.is_none_or(|of| of == Type::Text)
        && text_at(types, at).is_some()
    {
        operand.memory = 1;
        shape = types.shape(to).ok_or_else(|| other_type(&so_far))?;
    }
    let is_array = matches!(shape, Shape::Array { of, .. } if types.shape(of) == Some(Shape::Char));
    let is_structure = matches!(shape, Shape::Structure { .. });
    if let Some(of) = of.filter(|of| !((is_array || is_structure) && *of == Type::Text)) {
        let is_readable = operand.memory == 1 || !(of.is_float() || second.is_some());
        let typed = Typed::plain(of.at(operand), of);
        return if is_readable { Ok(typed) } else { Err(NoValue::Elsewhere(so_far)) };
    }
    match shape {
        Shape::Array { .. } if is_array && operand.memory == 1 => {
            // The text is there, not its address.
            operand.memory = 0;
            Ok(Typed::plain(Type::Text.at(operand), Type::Text))
        }
        Shape::Structure { at, .. } => {
            let text = text_at(types, at).and_then(|text| text_source(text, operand, second));
            let Some(source) = text else {
                return Err(match (operand.memory, second) {
                    (0, None) => NoValue::InRegisters(so_far),
                    _ => NoValue::Structure { of: so_far, there: members_of(types, at) },
                });
            };
            Ok(Typed::plain(source, Type::Text))
        }
        shape => {
            let of = own_type(types, shape).ok_or_else(|| other_type(&so_far))?;
            match of.is_float() && operand.memory == 0 {
                true => Err(NoValue::Elsewhere(so_far)),
                false => Ok(Typed { source: of.at(operand), of, names: names_of(types, shape) }),
            }
        }
    }
}

/// Returns the source of what a pointer leads to; `None` for a pointer that has to be read first.
fn behind(pointer: Operand) -> Option<Operand> {
    (pointer.memory == 0).then_some(Operand { memory: 1, ..pointer })
}

/// Returns the source of what lies at an offset in a structure in memory, or in two registers.
fn part(operand: Operand, second: Option<Operand>, offset: u64) -> Option<Operand> {
    match (operand.memory, second, offset) {
        (1, _, offset) => {
            let displacement = operand.displacement.checked_add(i64::try_from(offset).ok()?)?;
            Some(Operand { displacement, ..operand })
        }
        (_, Some(_), 0) => Some(operand),
        (_, Some(half), HALF) => Some(half),
        _ => None,
    }
}

/// Returns the source of the text of a structure in memory, or in two registers.
fn text_source(
    text: TextAt,
    operand: Operand,
    second: Option<Operand>,
) -> Option<(Operand, ValueForm)> {
    let at = |offset| part(operand, second, offset);
    Some(match text {
        TextAt::Ended(address) => Type::Text.at(at(address)?),
        TextAt::Counted { address, length } => {
            (Type::Pointer.at(at(address)?).0, ValueForm::Counted(at(length)?))
        }
    })
}

fn own_type(types: DebugTypes<'_>, shape: Shape) -> Option<Type> {
    Some(match shape {
        Shape::Integer { bytes, signed } | Shape::Enumeration { bytes, signed, .. } => {
            Type::Integer { bytes, signed }
        }
        Shape::Bool => Type::Bool,
        Shape::Char => Type::Char,
        Shape::Float { bytes } => Type::Float { bytes },
        Shape::Pointer { is_reference: true, .. } => Type::Pointer,
        Shape::Pointer { to, .. } => match to.and_then(|to| types.shape(to)) {
            Some(Shape::Char) => Type::Text,
            _ => Type::Pointer,
        },
        Shape::Structure { .. } | Shape::Array { .. } | Shape::Other { .. } => return None,
    })
}

/// Returns the first names of an enumeration in parentheses.
fn listed(names: &Names) -> String {
    const SOME: usize = 4;
    let first: Vec<&str> = names.iter().take(SOME).map(|one| &*one.name).collect();
    match names.len() {
        0 => String::new(),
        1..=SOME => format!(" ({})", first.join(", ")),
        _ => format!(" ({}, …)", first.join(", ")),
    }
}

/// Returns the names that people can type, by number, and those of one number as they are declared.
fn names_of(types: DebugTypes<'_>, shape: Shape) -> Names {
    let Shape::Enumeration { at, .. } = shape else { return Names::default() };
    let mut all = types.enumerators(at);
    all.retain(|(_, name)| is_name(name));
    all.sort_by_key(|(number, _)| *number);
    let name = |(number, name): (i64, String)| Arc::new(Enumerator { number, name: name.into() });
    all.into_iter().map(name).collect()
}

fn members_of(types: DebugTypes<'_>, structure: EntryAt) -> Vec<String> {
    let mut all = Vec::new();
    types.members(structure, |member| {
        if all.len() < SHOWN && !member.is_base {
            all.extend(types.name(member.at));
        }
    });
    names(all.iter())
}

/// Returns the first names that people can type.
fn names<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    all.filter(|name| is_name(name)).take(SHOWN).cloned().collect()
}

pub(super) fn is_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME && is_word(name)
}

#[cfg(test)]
#[path = "named_value_tests.rs"]
mod tests;
