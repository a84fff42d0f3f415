//! Makes the labels of a function from names that the target may choose freely.
//!
//! A name can be of any length and contain anything. Labels are bounded, and safe for a terminal
//! like the names in tables. A long one ends in a checksum of the full name, so that two remain
//! distinct.

use super::family::Labels;
use ctrace_core::{
    function::{FunctionInfo, FunctionKind},
    report::{FunctionReport, render::clean::clean},
};
use std::sync::Arc;

/// The limit of a label's value, in bytes.
const LONGEST: usize = 400;

/// The identity of a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FunctionKey {
    name: Arc<str>,
    object: Arc<str>,
    kind: FunctionKind,
    group: Option<Arc<str>>,
}

impl FunctionKey {
    pub(super) fn new(function: &FunctionReport) -> Self {
        Self {
            name: Arc::clone(&function.name),
            object: Arc::clone(&function.object),
            kind: function.kind,
            group: function.group.clone(),
        }
    }

    /// Makes one of names as they are shown: two that are shown alike are one.
    pub(super) fn of(function: &FunctionInfo) -> Self {
        Self {
            name: label(&function.name),
            object: label(&function.object),
            kind: function.kind,
            group: function.group.as_deref().map(label),
        }
    }

    pub(super) fn labels(&self, target: &Arc<str>) -> Labels {
        let kind = match self.kind {
            FunctionKind::Function => "function",
            FunctionKind::Usdt => "usdt",
            FunctionKind::Marker => "marker",
        };
        function_labels(
            target,
            [&self.name, &self.object, kind, self.group.as_deref().unwrap_or_default()],
        )
    }
}

/// Returns the labels of all functions without their own series.
pub(super) fn other(target: &Arc<str>) -> Labels {
    function_labels(target, ["other", "", "other", ""])
}

fn function_labels(target: &Arc<str>, values: [&str; 4]) -> Labels {
    let names = ["function", "object", "kind", "group"];
    let labels = names.into_iter().zip(values.map(label));
    [("target", Arc::clone(target))].into_iter().chain(labels).collect()
}

/// Returns a text that is safe and not too long.
pub(crate) fn label(text: &str) -> Arc<str> {
    let clean = clean(text);
    if clean.len() <= LONGEST {
        return clean.into();
    }
    let end = (0..LONGEST - 12).rev().find(|end| clean.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…{:08x}", &clean[..end], crc32fast::hash(text.as_bytes())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_harmless_and_bounded() {
        assert_eq!(&*label("std::vec<int>::push"), "std::vec<int>::push");
        assert_eq!(&*label("a\x1b[2J\n\0\"\\"), "a\\u{1b}[2J\\u{a}\\u{0}\"\\");
        let (one, two) = ("é".repeat(5_000), "é".repeat(5_001));
        assert!(label(&one).len() <= LONGEST && label(&one).starts_with("éé"));
        assert_ne!(label(&one), label(&two));
    }
}
