//! The place of Go's code, in the runtime's own description of the program (`runtime.moduledata`).
//!
//! From Go 1.26 on, the table of functions does not say where the code begins. The description does, and
//! from that release on has a section of its own. It repeats where the table is, and where the first
//! function begins and the last one ends, so a description of another layout is found out.

use super::{ElfLayout, Section};
use crate::target::read::source::Source;
use std::ops::Range;

const SECTION: &str = ".go.module";
/// The words before the place of the code, and it: all that are read.
const WORDS: usize = CODE + 1;
/// The places of the words that are used, in Go 1.26 and 1.27.
const TABLE: usize = 0;
const FIRST_FUNCTION: usize = 20;
const LAST_FUNCTION: usize = 21;
const CODE: usize = 22;

/// Returns the address from which the table at this address counts those of functions. The numbers for
/// the begin of its first function and the end of its last are `functions`.
pub(super) fn code_start(
    source: &Source,
    layout: &ElfLayout,
    table: u64,
    functions: Range<u64>,
) -> Option<u64> {
    let section = layout.section(SECTION).filter(|section| section.in_file)?;
    if section.size() < (WORDS * 8) as u64 {
        return None;
    }
    let words = source.part(section.offset, (WORDS * 8) as u64)?;
    let word = |index: usize| super::go_functions::word_at(words, 8 * index);
    let (start, end) = (word(FIRST_FUNCTION)?, word(LAST_FUNCTION)?);
    let code = word(CODE)?;
    let is_of_table = word(TABLE)? == table
        && code.checked_add(functions.start) == Some(start)
        && code.checked_add(functions.end) == Some(end);
    let holds = |it: &Section| {
        it.executable && it.addresses.start <= start && start < end && end <= it.addresses.end
    };
    (is_of_table && layout.sections.iter().any(holds)).then_some(code)
}
