//! Values by the names that the source gives them: a parameter, or a member of what it points to,
//! such as `req->method`.
//!
//! A program reads a register, or follows a pointer in a register to a number, or to a second pointer
//! that leads to it. So a path may follow two pointers, and a text at its end is one more.
//!
//! Texts are those that end with a 0, and those of `texts`, whose length is beside their address.

use super::abi::{Position, Type, results};
use super::asked::RESULT;
use super::part::ValuePart;
use super::place::Place;
use crate::target::debug_info::lines::Lines;
use crate::target::debug_info::parameters::{Parameter, ParameterPlace};
use crate::target::debug_info::stored::LOOKED_AT;
use crate::target::debug_info::types::{DebugTypes, EntryAt};
use crate::target::object::Object;
use crate::target::object::symbols::Function;
use ctrace_common::{Operand, ValueForm};
use ctrace_core::{function::is_word, values::Enumerator};
use std::{fmt, sync::Arc};

/// Names that an error lists, at most.
pub(super) const SHOWN: usize = 12;
/// Bytes of a name, at most.
const LONGEST_NAME: usize = 256;
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
    /// For a text: a 0 ends it, whether its length is known or not.
    pub(crate) is_ended: bool,
}

pub(crate) type Names = Arc<[Arc<Enumerator>]>;

impl Typed {
    /// Returns whether it tells of the Python function around a call.
    pub(crate) fn is_of_python(&self) -> bool {
        use ValueForm::{PythonFile, PythonLine, PythonName};
        matches!(self.source.1, PythonName | PythonFile | PythonLine)
    }

    /// Makes one of a type whose numbers have no names.
    pub(crate) fn plain(source: (Operand, ValueForm), of: Type) -> Self {
        let is_ended = source.1 == ValueForm::Text;
        Self { source, of, names: Names::default(), is_ended }
    }
}

/// The reason why a named value cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoValue {
    #[error(
        "debug information does not say where it is; give its place and type, such as 0:u64 for the first \
         integer"
    )]
    NotDescribed,
    #[error(
        "debug information does not say what it returns; give the type of the result, such as \
         'FUNCTION: i64'; there are {}",
        Type::RESULTS
    )]
    ResultNotDescribed,
    #[error("the compiler has changed its parameters")]
    Changed,
    #[error(
        "debug information does not tell for sure where `{0}` is; name its register and type, such as \
         1:u64"
    )]
    Unknown(String),
    #[error(
        "debug information names no place for `{0}`: the function does not use it, or the compiler passes \
         something else"
    )]
    Nowhere(String),
    #[error("Go passes arguments in its own way; trace its functions without --where")]
    Go,
    #[error("it returns nothing")]
    Nothing,
    #[error("`{0}` does not lie in one register; name a member of it, or another argument")]
    Split(String),
    #[error("it has no parameter `{name}`; {}", known(.there))]
    NoParameter { name: String, there: Vec<String> },
    #[error("`{of}` has no member `{name}`; {}", known(.there))]
    NoMember { of: String, name: String, there: Vec<String> },
    #[error("`{0}` is no structure and points to none")]
    NoStructure(String),
    #[error("`{of}` is a structure: {}", members(.there))]
    Structure { of: String, there: Vec<String> },
    #[error("`{0}` is in a vector register or in several registers, which are not read")]
    Elsewhere(String),
    #[error("`{0}` lies behind a third pointer, and only two are followed")]
    TooFar(String),
    #[error(
        "the type of `{0}` is only declared in the debug information; clang describes it with \
         -fstandalone-debug"
    )]
    Declared(String),
    #[error(
        "the types of some parts of `{of}` are only declared in the debug information; clang describes them \
         with -fstandalone-debug{}", or_members(.there)
    )]
    PartlyDeclared { of: String, there: Vec<String> },
    #[error("`{0}` is a bit field, which is not read")]
    BitField(String),
    #[error("`{0}` has a type that is not read")]
    OtherType(String),
    #[error("its result has a type that is not read; types that are: {}", Type::RESULTS)]
    OtherResult,
    #[error(
        "its result is in a vector register or in several registers, which are not read; types that \
         are read: {}",
        Type::RESULTS
    )]
    ResultElsewhere,
}

fn or_members(there: &[String]) -> String {
    match there {
        [] => String::new(),
        _ => format!("; or name a member; {}", known(there)),
    }
}

fn members(there: &[String]) -> String {
    match there {
        [] => "it has no member that can be read".to_owned(),
        _ => format!("name a member; {}", known(there)),
    }
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
        if is_changed(function.raw()) {
            return Err(NoValue::Changed);
        }
        let found = self.with_lines(|lines| {
            let parameters = self.described(lines, function)?;
            Some(find(lines, &parameters, path, of))
        });
        let not_described = || match has_others(function) {
            true => NoValue::Changed,
            false => NoValue::NotDescribed,
        };
        found.unwrap_or_else(|| Err(not_described()))
    }

    fn described(&self, lines: &Lines, function: &Function) -> Option<Vec<Parameter>> {
        let code = |address| {
            let offset = self.layout().file_offset(address);
            offset.map_or_else(Vec::new, |offset| self.source().peek(offset, LOOKED_AT))
        };
        lines.parameters(function.address, has_others(function), code)
    }

    /// Lists the parameters of a function with their types; none without debug information.
    pub(crate) fn parameters(&self, function: &Function) -> Vec<String> {
        if self.is_go() || is_changed(function.raw()) {
            return Vec::new();
        }
        let listed = self.with_lines(|lines| {
            let parameters = self.described(lines, function)?;
            let text = |name: &String| {
                let path = NamedPath { text: name.clone(), names: vec![name.clone()] };
                match find(lines, &parameters, &path, None) {
                    Ok(typed) => format!("{name}: {}{}", typed.of, listed(&typed.names)),
                    Err(NoValue::Structure { .. } | NoValue::PartlyDeclared { .. }) => {
                        format!("{name}: a structure")
                    }
                    Err(_) => format!("{name} (not read)"),
                }
            };
            let named = parameters.iter().map(|it| &it.name).filter(|name| is_name(name));
            Some(named.take(SHOWN).map(text).collect())
        });
        listed.unwrap_or_default()
    }

    /// Finds the result of a function, of its own type.
    pub(crate) fn named_result(&self, function: &Function) -> Result<Typed, NoValue> {
        if is_of_coroutine(function) {
            return Err(NoValue::Changed);
        }
        let found = self.with_lines(|lines| {
            let Some((of, place)) = lines.result_of(function.address)? else {
                return Some(Err(NoValue::Nothing));
            };
            Some(result(DebugTypes(lines), of, place))
        });
        found.unwrap_or(Err(NoValue::ResultNotDescribed))
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
    is_of_coroutine(function) || CLOSURES.iter().any(|mark| function.name().contains(mark))
}

/// Returns whether a function is a part of a coroutine, which does not return what the source says.
fn is_of_coroutine(function: &Function) -> bool {
    const PARTS: [&str; 4] = [".resume", ".destroy", ".cleanup", ".actor"];
    PARTS.iter().any(|part| function.raw().ends_with(part))
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
    let shape = parameter.of.and_then(|of| types.shape(of));
    let shape = shape.ok_or_else(|| unshaped(types, parameter.of, name))?;
    let mut part = ValuePart::new(types, name, shape);
    match parameter.place {
        ParameterPlace::Pair(number) => {
            let base = |number| Position::Register(number).base();
            part.place = Place::pair(base(number), base(number + 1));
        }
        ParameterPlace::Register(number) => {
            part.place = Place::register(Position::Register(number).base());
        }
        ParameterPlace::Behind(number) => {
            let base = Position::Register(number).base();
            part.place = Place::Memory(Operand { memory: Operand::READ, ..base });
        }
        ParameterPlace::Stack(slot) => part.place = Place::Memory(Position::Stack(slot).base()),
        ParameterPlace::Parts(parts) => part.place = Place::parts(&parts),
        ParameterPlace::Elsewhere => return Err(NoValue::Elsewhere(name.clone())),
        ParameterPlace::Unknown => return Err(NoValue::Unknown(name.clone())),
        ParameterPlace::Nowhere => return Err(NoValue::Nowhere(name.clone())),
    }
    for member in members {
        part.go_to(member)?;
    }
    part.follow_reference()?;
    // A pointer to an object with a text is one to the text.
    if of.is_none_or(|of| of == Type::Text) {
        part.follow_to_text();
    }
    part.read(of)
}

/// Returns why a value of this type, which has no shape, is not read.
pub(super) fn unshaped(types: DebugTypes<'_>, of: Option<EntryAt>, name: &str) -> NoValue {
    let name = name.to_owned();
    match of.is_some_and(|of| types.is_declared(of)) {
        true => NoValue::Declared(name),
        false => NoValue::OtherType(name),
    }
}

/// Finds a result of this type that a function leaves in this place.
fn result(types: DebugTypes<'_>, of: EntryAt, place: ParameterPlace) -> Result<Typed, NoValue> {
    let shape = types.shape(of).ok_or_else(|| match types.is_declared(of) {
        true => NoValue::Declared(RESULT.to_owned()),
        false => NoValue::OtherResult,
    })?;
    let mut part = ValuePart::new(types, RESULT, shape);
    let [first, second] = results();
    match place {
        ParameterPlace::Register(_) => part.place = Place::register(first),
        ParameterPlace::Pair(_) => part.place = Place::pair(first, second),
        ParameterPlace::Behind(_) => {
            part.place = Place::Memory(Operand { memory: Operand::READ, ..first });
        }
        ParameterPlace::Elsewhere => return Err(NoValue::ResultElsewhere),
        ParameterPlace::Stack(_)
        | ParameterPlace::Parts(_)
        | ParameterPlace::Unknown
        | ParameterPlace::Nowhere => return Err(NoValue::OtherResult),
    }
    let address = part.clone();
    match part.follow_reference().and_then(|()| part.read(None)) {
        Err(_) if address.is_reference() => address.read(Some(Type::Pointer)),
        Err(NoValue::Elsewhere(_) | NoValue::Split(_)) => Err(NoValue::ResultElsewhere),
        // Nothing can name a member of it.
        Err(NoValue::PartlyDeclared { of, .. }) => {
            Err(NoValue::PartlyDeclared { of, there: Vec::new() })
        }
        Err(_) => Err(NoValue::OtherResult),
        read => read,
    }
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

/// Returns the first names that people can type.
pub(crate) fn names<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    all.filter(|name| is_name(name)).take(SHOWN).cloned().collect()
}

pub(crate) fn is_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME && is_word(name)
}

#[cfg(test)]
#[path = "named_tests.rs"]
mod tests;
