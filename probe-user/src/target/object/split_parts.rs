//! Tells parts that a compiler split off from functions, where no name does.
//!
//! A part such as `f.cold` has an entry of its own in the unwind table. If `f` had built no frame when
//! it jumped there, that entry is like a function's. But nobody calls a part, and it is entered by
//! conditional jumps, with which hardly any function calls another.

use super::symbols::watched;
use crate::target::elf::ElfLayout;
use crate::target::elf::frames::FrameEntry;
use crate::target::place::near_jumps::{LONGEST, Near, near};
use crate::target::read::budget::TooLarge;
use crate::target::read::source::Source;
use std::ops::ControlFlow;

/// The ways by which code leads to the start of an entry.
#[derive(Clone, Copy, Default)]
struct Entered {
    by_call: bool,
    by_conditional_jump: bool,
}

/// Returns for each of these entries, which are in the order of their addresses, whether it is a part.
pub(super) fn find(
    source: &Source,
    layout: &ElfLayout,
    frames: &[FrameEntry],
) -> Result<Vec<bool>, TooLarge> {
    let budget = source.budget();
    let memory = frames.len() * (size_of::<Entered>() + size_of::<bool>());
    let _entered = budget.lend(memory as u64)?;
    let mut entered = vec![Entered::default(); frames.len()];
    for segment in layout.segments.iter().filter(|segment| segment.executable) {
        let mut look = |address: u64, bytes: &[u8]| {
            for (at, window) in bytes.windows(LONGEST).enumerate() {
                let from = address.saturating_add(at as u64);
                let Some((way, target)) = near(window, from) else { continue };
                let Ok(index) = frames.binary_search_by_key(&target, |it| it.start) else {
                    continue;
                };
                let is_own = (target..frames[index].end).contains(&from);
                match way {
                    Near::Call => entered[index].by_call = true,
                    Near::ConditionalJump if !is_own => entered[index].by_conditional_jump = true,
                    Near::ConditionalJump | Near::Jump => {}
                }
            }
        };
        let part = segment.offset..segment.offset.saturating_add(segment.file_size);
        let scan = || {
            source.scan(part, LONGEST - 1, |at, bytes| {
                look(segment.addresses.start.saturating_add(at), bytes);
                ControlFlow::Continue(())
            })
        };
        // What cannot be read leads nowhere.
        _ = watched(budget, scan)?;
    }
    let is_part = |it: &Entered| it.by_conditional_jump && !it.by_call;
    Ok(entered.iter().map(is_part).collect())
}
