//! Tells code from data where no function is known.
//!
//! Assembly puts tables between its functions (those of OpenSSL's curves take 150 KB). Some bytes
//! in there look like a stack switch. Code that runs is referred to by something: a call, a jump,
//! or an address in an instruction, a table or a relocation. All of these are four bytes that give
//! the target, relative to themselves or not. So it is code only if the control flow from such a
//! target reaches it.

use crate::target::place::code::functions::Extent;
use crate::target::place::code::stacks::{MOST, Place, Unsearched, search};
use crate::target::read::source::Source;

/// Four bytes that may refer to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) target: u64,
    /// The address of the four bytes, if they are relative.
    pub(crate) from: Option<u64>,
}

/// Returns all references into these gaps from a file's loaded segments.
pub(crate) fn into_gaps(
    source: &Source,
    segments: &[Place],
    gaps: &[Extent],
) -> Result<Vec<Reference>, Unsearched> {
    let inside = |target: u64| gaps.iter().any(|gap| (gap.start..gap.end).contains(&target));
    let low = gaps.iter().map(|gap| gap.start).min().unwrap_or(u64::MAX);
    let high = gaps.iter().map(|gap| gap.end).max().unwrap_or(0);
    search(source, segments, 3, Unsearched::Tangled, |here, bytes, found| {
        for (at, four) in bytes.windows(4).enumerate() {
            let Ok(four) = <[u8; 4]>::try_from(four) else { continue };
            let from = here.wrapping_add(at as u64);
            let relative =
                from.wrapping_add(4).wrapping_add_signed(i32::from_le_bytes(four).into());
            let absolute = u64::from(u32::from_le_bytes(four));
            if (low..high).contains(&relative) && inside(relative) {
                found.push(Reference { target: relative, from: Some(from) });
            }
            if (low..high).contains(&absolute) && inside(absolute) {
                found.push(Reference { target: absolute, from: None });
            }
            if found.len() > MOST {
                return;
            }
        }
    })
}
