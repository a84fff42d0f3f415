//! Functions whose code the compiler put into others, as debug information tells.

use super::{Object, symbols::Function};
use crate::target::names::demangle;

impl Object {
    /// Returns the name of an inlined function that matches, and that of the function around it.
    pub(crate) fn inlined_like(&self, matches: impl Fn(&str) -> bool) -> Option<(String, String)> {
        let (name, address) = self.with_lines(|lines| lines.inlined_like(matches))?;
        Some((name, demangle::without_suffix(self.function_around(address)?.name()).to_owned()))
    }

    /// Returns the names of functions with inlined code in this one, those with the most code first.
    pub(crate) fn inlined_into(&self, function: &Function) -> Vec<String> {
        let names = self.with_lines(|lines| Some(lines.inlined_into(&function.addresses())));
        names.unwrap_or_default()
    }
}
