//! A value that debug information describes, or a part of one: where it is, and what a program reads
//! of it.

use super::abi::Type;
use super::named::{Names, NoValue, SHOWN, Typed, is_name, names, unshaped};
use super::place::{Place, REGISTER};
use crate::target::debug_info::texts::{TextAt, text_at};
use crate::target::debug_info::types::{DEEPEST, DebugTypes, EntryAt, Shape};
use ctrace_common::{Operand, ValueForm};
use ctrace_core::values::Enumerator;
use std::sync::Arc;

#[derive(Clone)]
pub(super) struct ValuePart<'a> {
    types: DebugTypes<'a>,
    /// The path to it, as the source would have it.
    name: String,
    shape: Shape,
    pub(super) place: Place,
}

impl<'a> ValuePart<'a> {
    /// Makes one that is nowhere yet.
    pub(super) fn new(types: DebugTypes<'a>, name: &str, shape: Shape) -> Self {
        Self { types, name: name.to_owned(), shape, place: Place::Nowhere }
    }

    /// Goes on to a member, over a pointer if there is one.
    pub(super) fn go_to(&mut self, member: &str) -> Result<(), NoValue> {
        let types = self.types;
        if let Shape::Pointer { to, is_reference } = self.shape {
            let sign = if is_reference { "" } else { "*" };
            self.follow(|so_far| format!("{so_far}->{member}"))?;
            let shape = to.and_then(|to| types.shape(to));
            self.shape = shape.ok_or_else(|| match to.is_some_and(|to| types.is_declared(to)) {
                true => NoValue::Declared(format!("{sign}{}", self.name)),
                false => NoValue::NoStructure(self.name.clone()),
            })?;
        }
        let Shape::Structure { at, .. } = self.shape else {
            return Err(NoValue::NoStructure(self.name.clone()));
        };
        let Some(found) = types.member(at, member) else {
            let (of, name) = (self.name.clone(), member.to_owned());
            return Err(NoValue::NoMember { of, name, there: members_of(types, at) });
        };
        self.name = format!("{}.{member}", self.name);
        if found.is_bit_field {
            return Err(NoValue::BitField(self.name.clone()));
        }
        self.shape =
            types.shape(found.of).ok_or_else(|| unshaped(types, Some(found.of), &self.name))?;
        let place = self.place.behind(found.offset);
        self.place = place.ok_or_else(|| NoValue::Split(self.name.clone()))?;
        Ok(())
    }

    pub(super) fn is_reference(&self) -> bool {
        matches!(self.shape, Shape::Pointer { is_reference: true, .. })
    }

    /// Goes on to what it refers to, if it is a reference.
    pub(super) fn follow_reference(&mut self) -> Result<(), NoValue> {
        if let Shape::Pointer { to: Some(to), is_reference: true } = self.shape {
            self.follow(str::to_owned)?;
            let types = self.types;
            self.shape = types.shape(to).ok_or_else(|| unshaped(types, Some(to), &self.name))?;
        }
        Ok(())
    }

    /// Goes on to what it points to, if that is an object with a text.
    pub(super) fn follow_to_text(&mut self) {
        if let Shape::Pointer { to: Some(to), .. } = self.shape
            && let Some(shape @ Shape::Structure { at, .. }) = self.types.shape(to)
            && text_at(self.types, at).is_some()
            && let Some(operand) = self.pointer().and_then(Operand::followed)
        {
            self.place = Place::Memory(operand);
            self.shape = shape;
        }
    }

    /// Goes on to where a pointer leads. One behind too many others is refused by this name.
    fn follow(&mut self, name: impl Fn(&str) -> String) -> Result<(), NoValue> {
        let pointer = self.pointer().ok_or_else(|| self.not_in_one(REGISTER))?;
        let followed = pointer.followed().ok_or_else(|| NoValue::TooFar(name(&self.name)))?;
        self.place = Place::Memory(followed);
        Ok(())
    }

    fn pointer(&self) -> Option<Operand> {
        self.place.source(0, REGISTER)
    }

    /// Returns why so many bytes of it cannot be read.
    fn not_in_one(&self, bytes: u64) -> NoValue {
        match self.place.has_any(bytes) {
            true => NoValue::Split(self.name.clone()),
            false => NoValue::Nowhere(self.name.clone()),
        }
    }

    /// Returns what a program reads of it, as this type or as its own.
    pub(super) fn read(self, of: Option<Type>) -> Result<Typed, NoValue> {
        let Self { types, shape, ref place, .. } = self;
        let is_text = match shape {
            Shape::Array { of, .. } => types.shape(of) == Some(Shape::Char),
            _ => false,
        };
        let text = match shape {
            Shape::Structure { at, .. } => text_at(types, at),
            _ => None,
        };
        match (of, text) {
            (None | Some(Type::Text), Some(text)) => {
                let source = self.text_source(text);
                let source = source.ok_or_else(|| self.not_in_one(types.bytes(shape)))?;
                let is_ended = !matches!(text, TextAt::Counted { is_ended: false, .. });
                Ok(Typed { is_ended, ..Typed::plain(source, Type::Text) })
            }
            // The address of the text.
            (
                Some(Type::Pointer),
                Some(TextAt::Ended(at) | TextAt::Counted { address: at, .. }),
            ) => {
                let source = place.source(at, REGISTER).ok_or_else(|| self.not_in_one(REGISTER))?;
                Ok(Typed::plain(Type::Pointer.at(source), Type::Pointer))
            }
            (None | Some(Type::Text | Type::Pointer), None) if is_text => match place {
                // The text is there, not its address.
                Place::Memory(operand) => {
                    let of = of.unwrap_or(Type::Text);
                    let memory = operand.memory & !Operand::READ;
                    Ok(Typed::plain(of.at(Operand { memory, ..*operand }), of))
                }
                _ => Err(self.other_type()),
            },
            (Some(of), _) => {
                let is_wide = types.bytes(shape) > REGISTER;
                if !place.is_memory() && (of.is_float() || is_wide) {
                    return Err(NoValue::Elsewhere(self.name));
                }
                let bytes = of.at(Operand::ZERO).0.size.into();
                let source = place.source(0, bytes).ok_or_else(|| self.not_in_one(bytes))?;
                Ok(Typed::plain(of.at(source), of))
            }
            (None, _) => match (shape, own_type(types, shape)) {
                (Shape::Structure { at, .. }, _) => {
                    let (of, there) = (self.name, members_of(types, at));
                    Err(match types.has_declared_part(at) {
                        true => NoValue::PartlyDeclared { of, there },
                        false => NoValue::Structure { of, there },
                    })
                }
                (_, None) => Err(self.other_type()),
                (_, Some(of)) if of.is_float() && !place.is_memory() => {
                    Err(NoValue::Elsewhere(self.name))
                }
                (_, Some(of)) => {
                    let bytes = types.bytes(shape);
                    let source = place.source(0, bytes).ok_or_else(|| self.not_in_one(bytes))?;
                    let names = names_of(types, shape);
                    Ok(Typed { names, ..Typed::plain(of.at(source), of) })
                }
            },
        }
    }

    fn text_source(&self, text: TextAt) -> Option<(Operand, ValueForm)> {
        Some(match text {
            TextAt::Ended(address) => Type::Text.at(self.place.source(address, REGISTER)?),
            TextAt::Counted { address, length, .. } => {
                let length = ValueForm::Counted(self.place.source(length, REGISTER)?);
                (Type::Pointer.at(self.place.source(address, REGISTER)?).0, length)
            }
        })
    }

    fn other_type(&self) -> NoValue {
        NoValue::OtherType(self.name.clone())
    }
}

/// Returns the type that people would give.
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
    add_members(types, structure, 0, &mut all);
    names(all.iter())
}

/// Adds the names of members, and in place of one without a name, such as a union, those in it: these are
/// found, too.
fn add_members(types: DebugTypes<'_>, structure: EntryAt, depth: usize, all: &mut Vec<String>) {
    types.members(structure, |member| {
        if all.len() >= SHOWN || member.is_base {
            return;
        }
        match types.name(member.at).filter(|name| !name.is_empty()) {
            Some(name) => all.push(name),
            None if depth < DEEPEST => {
                if let Some(Shape::Structure { at, .. }) = types.shape(member.of) {
                    add_members(types, at, depth + 1, all);
                }
            }
            None => {}
        }
    });
}
