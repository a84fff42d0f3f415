//! The names that people see for the functions that rows of a report refer to.

use super::{CallReport, FunctionReport, Report};
use crate::colour::Colour;
use crate::function::{is_point, qualified};
use std::borrow::Cow;

impl FunctionReport {
    /// See [`FunctionInfo::is_point`](crate::function::FunctionInfo::is_point).
    pub fn is_point(&self) -> bool {
        is_point(self.kind, &self.aliases, self.point)
    }

    /// Returns the name: a marker with its group, a USDT probe with its provider.
    pub fn qualified(&self) -> Cow<'_, str> {
        qualified(self.kind, self.group.as_deref(), &self.name)
    }
}

impl Report {
    /// Returns the name of the function at this index.
    pub fn name_of(&self, function: usize) -> Cow<'_, str> {
        self.functions.get(function).map_or(Cow::Borrowed("?"), FunctionReport::qualified)
    }

    /// Returns the colour that the program gives the function at this index.
    pub fn colour_of(&self, function: usize) -> Option<Colour> {
        self.functions.get(function)?.colour
    }

    /// Returns the names of the functions on a path, root to leaf.
    pub fn names_on_path(&self, path: usize) -> Vec<Cow<'_, str>> {
        let mut names = Vec::new();
        let mut next = Some(path);
        while let Some(at) = next
            && let Some(path) = self.paths.get(at)
        {
            names.push(self.name_of(path.function));
            // Parents come first. A row that claims otherwise is treated as a root.
            next = path.parent.filter(|&parent| parent < at);
        }
        names.reverse();
        names
    }

    /// Returns the names of the functions on the path of a call, root to leaf.
    pub fn names_of_call(&self, call: &CallReport) -> Vec<Cow<'_, str>> {
        call.functions.iter().map(|&function| self.name_of(function)).collect()
    }
}
