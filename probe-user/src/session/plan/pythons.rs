//! The interpreters of Python that the traced processes have loaded, where values tell of Python functions.

use super::{Identity, Planner, identity, values::ValuePlanner};
use crate::target::{
    object::Object,
    process::maps::MappedObject,
    python::{Interpreter, KNOWN, Unreadable},
};
use anyhow::bail;
use ctrace_common::PythonPlaces;
use ctrace_core::report::render::clean::clean;
use std::collections::HashMap;

/// See the module.
#[derive(Default)]
pub(super) struct Pythons {
    known: HashMap<Identity, Interpreter>,
    /// Those whose functions cannot be read, with the reasons.
    unreadable: Vec<(String, Unreadable)>,
}

impl Pythons {
    /// Looks for interpreters in objects.
    fn look(&mut self, objects: &[Object]) {
        for object in objects {
            match Interpreter::of(object) {
                Some(Ok(interpreter)) => {
                    self.known.insert(object.identity(), interpreter);
                }
                Some(Err(why)) => self.unreadable.push((clean(object.name()).into_owned(), why)),
                None => {}
            }
        }
    }

    /// Returns why no Python function can be read.
    fn lacking(&self) -> Option<String> {
        match self.unreadable.first() {
            _ if !self.known.is_empty() => None,
            Some((name, why)) => {
                Some(format!("the Python functions of {name} cannot be read: {why}"))
            }
            None => Some(format!(
                "no Python interpreter is in this process: none of its objects has the symbol `_PyRuntime`; \
                 `python` in --arg reads functions of {KNOWN}"
            )),
        }
    }
}

impl ValuePlanner {
    fn reads_python(&self) -> bool {
        self.reads && self.asked.iter().any(|asked| asked.asks_for_python())
    }
}

impl Planner {
    /// True if values may tell of the Python function around a call.
    pub(crate) fn reads_python(&self) -> bool {
        self.values.reads_python()
    }

    /// Looks for interpreters in objects that have just been read.
    pub(super) fn look_for_python(&mut self, objects: &[Object]) {
        if self.reads_python() {
            self.values.pythons.look(objects);
        }
    }

    /// Refuses a process without an interpreter, unless one may come later. Otherwise returns a remark on what
    /// is missing.
    pub(super) fn check_python(&self) -> anyhow::Result<Option<String>> {
        let lacking = self.reads_python().then(|| self.values.pythons.lacking()).flatten();
        match lacking {
            Some(why) if self.awaits.is_none() => bail!("{why}"),
            lacking => Ok(lacking),
        }
    }

    /// Returns where a process that has mapped these objects keeps its Python functions.
    pub(crate) fn python_of(&self, mapped: &[MappedObject]) -> Option<PythonPlaces> {
        let mut places = mapped
            .iter()
            .filter_map(|object| self.values.pythons.known.get(&identity(object))?.places(object));
        places.next()
    }
}
