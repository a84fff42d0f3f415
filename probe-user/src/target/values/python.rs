//! The Python function around a call, as a value of that call: `python`, `python.file`, `python.line`.

use super::abi::Type;
use super::named::Typed;
use ctrace_common::{Operand, ValueForm};
use std::fmt;

/// A fact of the innermost Python function that the thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PythonFact {
    /// Its qualified name.
    Name,
    /// The path of its file.
    File,
    /// The line where its definition begins.
    Line,
}

impl PythonFact {
    pub(super) const ALL: [Self; 3] = [Self::Name, Self::File, Self::Line];

    pub(super) fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fact| fact.name() == text)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Name => "python",
            Self::File => "python.file",
            Self::Line => "python.line",
        }
    }

    pub(super) fn is_text(self) -> bool {
        self != Self::Line
    }

    /// Returns what a program reads. It finds the place by itself.
    pub(crate) fn typed(self) -> Typed {
        let (form, of) = match self {
            Self::Name => (ValueForm::PythonName, Type::Text),
            Self::File => (ValueForm::PythonFile, Type::Text),
            Self::Line => (ValueForm::PythonLine, Type::Integer { bytes: 4, signed: true }),
        };
        Typed::plain((Operand::NOWHERE, form), of)
    }
}

impl fmt::Display for PythonFact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
