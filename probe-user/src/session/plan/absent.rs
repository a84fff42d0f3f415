//! Values that are asked for by a name, and that functions lack. A pattern may match a thousand
//! functions: they get one note together.

use crate::{target::named_value::NoValue, ui::units::count};
use ctrace_core::report::render::clean::clean;
use std::collections::BTreeMap;

/// Functions that a note names.
const NAMED: usize = 3;

/// See the module. A key is the number of what was asked for, and the name of a value there.
#[derive(Default)]
pub(super) struct Absent(BTreeMap<(usize, String), Lack>);

#[derive(Default)]
struct Lack {
    /// The number of functions that have the value, and of those that lack it.
    have: u64,
    lack: u64,
    first: Vec<String>,
    why: Option<NoValue>,
}

impl Absent {
    /// Notes whether a function has a value.
    pub(super) fn note<T>(
        &mut self,
        asked: usize,
        value: &str,
        function: &str,
        found: Result<T, NoValue>,
    ) -> Option<T> {
        let lack = self.0.entry((asked, value.to_owned())).or_default();
        match found {
            Ok(found) => {
                lack.have += 1;
                Some(found)
            }
            Err(why) => {
                lack.lack += 1;
                if lack.first.len() < NAMED {
                    lack.first.push(function.to_owned());
                }
                lack.why.get_or_insert(why);
                None
            }
        }
    }

    /// Returns a note for each value that some functions lack, and one for each that all lack.
    pub(super) fn take(&mut self) -> (Vec<String>, Vec<String>) {
        let (mut of_some, mut of_all) = (Vec::new(), Vec::new());
        for ((_, value), lack) in std::mem::take(&mut self.0) {
            let Some(why) = lack.why else { continue };
            let (value, first) = (clean(&value).into_owned(), lack.first.join(", "));
            let functions = match lack.lack {
                0..=3 => first,
                more => format!("{} functions, such as {first}", count(more)),
            };
            let note = format!("`{value}` is not read in {functions}: {why}");
            if lack.have == 0 { of_all.push(note) } else { of_some.push(note) }
        }
        (of_some, of_all)
    }
}
