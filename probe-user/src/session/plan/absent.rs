//! Functions that lack what is asked of them: a value by its name, or what a condition needs. A pattern
//! may match a thousand functions: they get one note together.

use super::by_reason::ByReason;
use ctrace_core::report::{NOT_READ, render::clean::clean};
use std::{collections::BTreeMap, fmt};

/// A value or a condition that is asked of functions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Requirement {
    /// A value of this name.
    Value(String),
    /// This condition. A function without it is not traced.
    Condition(String),
}

/// A note for each thing that functions lack.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Lacking {
    /// Values that some functions lack, and those that all lack.
    pub(super) of_some: Vec<String>,
    pub(super) of_all: Vec<String>,
    /// Conditions because of which functions are not traced.
    pub(super) not_traced: Vec<String>,
}

/// See the module. A key has the number of what was asked for.
#[derive(Default)]
pub(super) struct Absent(BTreeMap<(usize, Requirement), Lack>);

#[derive(Default)]
struct Lack {
    /// The number of functions that have the value.
    have: u64,
    lack: ByReason,
}

impl Absent {
    /// Notes whether a function has what is wanted.
    pub(super) fn note<T>(
        &mut self,
        asked: usize,
        wanted: Requirement,
        function: &str,
        found: Result<T, impl fmt::Display>,
    ) -> Option<T> {
        let lack = self.0.entry((asked, wanted)).or_default();
        match found {
            Ok(found) => {
                lack.have += 1;
                Some(found)
            }
            Err(why) => {
                lack.lack.add(function, why.to_string());
                None
            }
        }
    }

    /// Returns the notes, and forgets them.
    pub(super) fn take(&mut self) -> Lacking {
        let mut all = Lacking::default();
        for ((_, wanted), lack) in std::mem::take(&mut self.0) {
            let Some(functions) = lack.lack.tell() else { continue };
            match wanted {
                Requirement::Value(name) => {
                    let note = format!("`{}` is {NOT_READ} in {functions}", clean(&name));
                    let list = if lack.have == 0 { &mut all.of_all } else { &mut all.of_some };
                    list.push(note);
                }
                Requirement::Condition(text) => all.not_traced.push(format!(
                    "not traced, because `{}` cannot be asked: {functions}",
                    clean(&text)
                )),
            }
        }
        all
    }
}
