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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::values::asked::{AskedPlace, AskedValues};

    #[test]
    fn facts_are_values_with_names() {
        let asked = AskedValues::arguments("f: python, from=python.file, python.line, 0:u8");
        let asked = asked.expect("values");
        let found: Vec<_> = asked.arguments.iter().map(|it| (&*it.name, &it.place)).collect();
        let [name, file, line] = PythonFact::ALL.map(AskedPlace::Python);
        assert_eq!(found[..3], [("python", &name), ("from", &file), ("python.line", &line)]);
        assert!(asked.asks_for_python());
        // Members of a parameter of that name, which the source may have.
        for text in ["f: python.other", "f: python->file", "f: python:ptr"] {
            assert!(!AskedValues::arguments(text).expect("a name").asks_for_python(), "{text}");
        }
        let types = PythonFact::ALL.map(|fact| fact.typed().of);
        let number = Type::Integer { bytes: 4, signed: true };
        assert_eq!(types, [Type::Text, Type::Text, number]);
    }

    #[test]
    fn what_has_no_such_value_is_told() {
        for (text, told) in [
            ("p:q: 0:u8, python", "is read at functions, not at USDT probes"),
            ("f: python, a=python", "`python` is asked for twice"),
            ("f: python, python.file, 0:str, 1:str, 2:str", "at most 4 texts"),
        ] {
            let error = AskedValues::arguments(text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
        for text in ["f: python == \"Srv.hash\"", "f: python.line > 5", "f: !python"] {
            let error = AskedValues::condition(text).unwrap_err().to_string();
            assert!(error.contains("is not compared; read it with --arg"), "{text}: {error}");
        }
    }
}
