//! Functions without a name, by the unwind table, which stripped objects have, too.
//!
//! The table has an entry for each function, for each part that the compiler split off, and for the
//! code around `main`. Only functions are taken.

use super::code::Code;
use super::symbols::watched;
use super::{Object, split_parts};
use crate::target::elf::frames::{FrameTable, Start};
use crate::target::elf::{self, ElfError, ElfLayout};
use crate::target::read::budget::TooLarge;
use crate::target::read::source::Source;
use ctrace_core::ranges::Ranges;
use object::{Object as _, ObjectSection as _};
use std::ops::Range;

const TABLE: &str = ".eh_frame";
/// Limit of such functions. The largest browsers have about as many.
const MOST: usize = 500_000;
/// More bytes than one of them takes with its name.
const EACH: u64 = 256;

/// The reason why functions without a name are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LeftOut {
    #[error("there are more than {MOST} of them")]
    TooMany,
    #[error("its unwind table {0}")]
    TooLarge(#[from] TooLarge),
}

impl Object {
    /// Gives a library's functions without a name one by their addresses. Those of a program have one
    /// anyway. It is called before the first look at its functions.
    pub(crate) fn name_by_address(&mut self) {
        self.is_named_by_address = true;
    }
}

/// Returns the functions that begin in one of these sections of code and in none of the known functions,
/// in the order of their addresses. If that is too much, the object lacks them alone.
pub(super) fn read(
    source: &Source,
    layout: &ElfLayout,
    code: &Code,
    known: &Ranges,
) -> Result<Vec<Range<u64>>, LeftOut> {
    let budget = source.budget();
    let read = || {
        let found = watched(budget, || find(source, layout, code, known));
        found.unwrap_or_else(|why| Err(why.into()))
    };
    budget.try_optional(read, Result::is_err)
}

fn find(
    source: &Source,
    layout: &ElfLayout,
    code: &Code,
    known: &Ranges,
) -> Result<Vec<Range<u64>>, LeftOut> {
    let file = match elf::parse(source) {
        Ok(file) => file,
        Err(ElfError::TooLarge(why)) => return Err(why.into()),
        Err(_) => return Ok(Vec::new()),
    };
    // Its bytes stay for those who place probes.
    if file.section_by_name(TABLE).is_none_or(|table| table.data().is_err()) {
        return Ok(Vec::new());
    }
    let budget = source.budget();
    let before = budget.used();
    let functions = FrameTable::read(&file, source, &|_| None)
        .map_err(LeftOut::from)
        .and_then(|table| functions(&table, source, layout, code, known));
    budget.release(budget.used().saturating_sub(before));
    let functions = functions?;
    if functions.len() > MOST {
        return Err(LeftOut::TooMany);
    }
    drop(budget.lend(functions.len() as u64 * EACH)?);
    Ok(functions)
}

fn functions(
    table: &FrameTable<'_>,
    source: &Source,
    layout: &ElfLayout,
    code: &Code,
    known: &Ranges,
) -> Result<Vec<Range<u64>>, LeftOut> {
    let frames = table.entries();
    let are_parts = split_parts::find(source, layout, frames)?;
    // The linker pieces these together.
    let pieced = |name: &str| layout.section(name).map(|section| section.addresses.clone());
    let pieced = [".init", ".fini"].map(|name| pieced(name).unwrap_or_default());
    let (mut found, mut reached) = (Vec::new(), 0);
    for (frame, is_part) in frames.iter().zip(are_parts) {
        let Some(section) = code.section_of(frame.start).filter(|_| frame.start >= reached) else {
            continue;
        };
        reached = frame.end.min(section.end);
        let is_function = frame.first == Start::Function && !frame.has_saved && !is_part;
        let is_known =
            known.contains(frame.start) || pieced.iter().any(|it| it.contains(&frame.start));
        if is_function && !is_known {
            found.push(frame.start..reached);
        }
    }
    Ok(found)
}

#[cfg(test)]
#[path = "unnamed_tests.rs"]
mod tests;
