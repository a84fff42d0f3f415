//! The places of arguments, as users give them.

use super::abi::{Position, Type};
use super::named::NamedPath;
use super::python::PythonFact;
use std::fmt;

/// The place and type of an argument, or its name in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AskedPlace {
    At(Position, Type),
    /// Without a type, it has the one of the source.
    Named(NamedPath, Option<Type>),
    /// A fact of the Python function around the call.
    Python(PythonFact),
}

impl AskedPlace {
    pub(super) fn is_text(&self) -> bool {
        match self {
            Self::At(_, of) | Self::Named(_, Some(of)) => *of == Type::Text,
            Self::Named(_, None) => false,
            Self::Python(fact) => fact.is_text(),
        }
    }
}

/// Displays the name of an argument that is given no other.
impl fmt::Display for AskedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(position, _) => position.fmt(f),
            Self::Named(path, _) => path.fmt(f),
            Self::Python(fact) => fact.fmt(f),
        }
    }
}
