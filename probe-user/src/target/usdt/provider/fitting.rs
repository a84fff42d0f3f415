//! Compares what a file declares with the notes of the program, which are never out of date.

use super::{Declared, parse};
use crate::target::{
    usdt::{UsdtSite, arguments::Argument},
    values::abi::Type,
};
use ctrace_common::Operand;

/// A file declares another number of arguments than a probe has. It is about another version of the
/// program, and nothing tells which arguments it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the provider file has another number of arguments ({declared}, the program has {noted}), so it is \
     ignored for this probe; use the file of the program's own version"
)]
pub(crate) struct OtherNumber {
    pub(super) declared: usize,
    pub(super) noted: usize,
}

/// Keeps the types that the notes allow at all places of a probe.
pub(super) fn fitting(
    declared: &[Declared],
    sites: &[UsdtSite],
) -> Result<Vec<Declared>, OtherNumber> {
    let parsed: Vec<_> = sites.iter().map(|site| parse(&site.arguments)).collect();
    let noted = parsed.iter().map(Vec::len).max().unwrap_or(0);
    if noted != declared.len() {
        return Err(OtherNumber { declared: declared.len(), noted });
    }
    let notes: Vec<_> = (0..noted).map(|place| Noted::at(&parsed, place)).collect();
    let each = declared.iter().zip(&notes).map(|(argument, note)| {
        let of = argument.of.filter(|of| note.fits(*of));
        let length = argument.length.filter(|_| of == Some(Type::Text));
        // A text whose end nothing tells is its address.
        let is_endless = length.is_some_and(|length| !notes[length].is_integer());
        match is_endless {
            true => Declared { of: Some(Type::Pointer), length: None, ..argument.clone() },
            false => Declared { of, length, ..argument.clone() },
        }
    });
    Ok(each.collect())
}

/// The sizes of an argument at all places where it is understood, and whether it is a floating-point
/// number there.
struct Noted(Vec<(Operand, bool)>);

impl Noted {
    fn at(parsed: &[Vec<Argument<'_>>], place: usize) -> Self {
        let sources = parsed.iter().filter_map(|arguments| arguments.get(place)?.source.ok());
        let all = sources.filter_map(|source| {
            // Its size does not depend on where it lies.
            let operand = source.operand(0, |_| Some(0)).ok()?;
            Some((operand, source.is_float))
        });
        let mut all: Vec<_> = all.collect();
        // Where it is an integer at other places, it is read there alone.
        if all.iter().any(|(_, is_float)| !is_float) {
            all.retain(|(_, is_float)| !is_float);
        }
        Self(all)
    }

    fn fits(&self, of: Type) -> bool {
        let all = self.0.iter();
        !self.0.is_empty() && all.clone().all(|(operand, it)| of.declared(*operand, *it).is_some())
    }

    fn is_integer(&self) -> bool {
        self.0.iter().any(|(_, is_float)| !is_float)
    }
}
