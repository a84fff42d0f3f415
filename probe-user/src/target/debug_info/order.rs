//! The order in which Rust passes parameters: as they are declared, and their parts by their offsets.
//!
//! A function may give a parameter another value before its first instruction, as far as debug
//! information tells: two are exchanged, or one is set to another one's. Then registers are not in
//! this order, or two parameters seem to be in one.

use super::parameters::{Parameter, ParameterPlace};
use super::passed::{Passed, PassedPart};

/// Parts of all parameters that are compared. There are fewer registers and slots.
const COMPARED: usize = 512;

/// Makes the places of parameters unknown that are not in their order.
pub(super) fn drop_disordered(parameters: &mut [Parameter]) {
    let own = |(at, it): (usize, &Parameter)| it.place.parts().into_iter().map(move |it| (at, it));
    let parts: Vec<(usize, PassedPart)> = parameters.iter().enumerate().flat_map(own).collect();
    let mut is_wrong = vec![parts.len() > COMPARED; parameters.len()];
    for (nth, (at, part)) in parts.iter().enumerate().take(COMPARED) {
        is_wrong[*at] |= part.shift != 0 && !part.is_in_place();
        for (other, later) in &parts[nth + 1..] {
            if !is_ordered(*part, *later, at == other) {
                (is_wrong[*at], is_wrong[*other]) = (true, true);
            }
        }
    }
    for (parameter, _) in parameters.iter_mut().zip(is_wrong).filter(|(_, is_wrong)| *is_wrong) {
        parameter.place = ParameterPlace::Unknown;
    }
}

/// Returns whether a part may come before another one. `is_same`: both are of one parameter.
fn is_ordered(part: PassedPart, later: PassedPart, is_same: bool) -> bool {
    let (number, after) = match (part.from, later.from) {
        (Passed::Register(number), Passed::Register(after))
        | (Passed::Stack(number), Passed::Stack(after)) => (number, after),
        _ => return true,
    };
    // Parts of a small structure share a register, in which they are as in memory.
    let is_shared = is_same
        && number == after
        && part.is_in_place()
        && later.is_in_place()
        && part.offset / 8 == later.offset / 8
        && part.offset < later.offset;
    number < after || is_shared
}

impl PassedPart {
    /// Returns whether it is as far in its register as it is in 8 bytes of its parameter.
    fn is_in_place(&self) -> bool {
        self.offset % 8 * 8 == u64::from(self.shift)
    }
}

impl ParameterPlace {
    /// Returns whether debug information does not tell where it is.
    pub(super) fn is_nowhere(self) -> bool {
        matches!(self, Self::Unknown | Self::Nowhere)
    }

    /// Returns whether another place of the same parameter is this one, or a part of it. True where this
    /// one is not known.
    pub(super) fn agrees(self, other: Self) -> bool {
        let own = self.parts();
        let is_behind = |it| matches!(it, Self::Behind(_));
        let is_own = |part: &PassedPart| {
            let at = part.offset / 8;
            let from = match self {
                Self::Stack(slot) => Some(Passed::Stack(slot.saturating_add(at as u8))),
                _ => own.get(at as usize).map(|own| own.from),
            };
            from == Some(part.from) && part.is_in_place()
        };
        own.is_empty() || is_behind(self) == is_behind(other) && other.parts().iter().all(is_own)
    }

    /// Returns its parts.
    fn parts(self) -> Vec<PassedPart> {
        let whole = |from| PassedPart { offset: 0, bytes: 8, from, shift: 0 };
        let register = |number| whole(Passed::Register(number));
        match self {
            Self::Register(number) | Self::Behind(number) => vec![register(number)],
            Self::Pair(number) => {
                vec![register(number), PassedPart { offset: 8, ..register(number + 1) }]
            }
            Self::Stack(slot) => vec![whole(Passed::Stack(slot))],
            Self::Parts(parts) => {
                let mut parts: Vec<_> = parts.into_iter().flatten().collect();
                parts.sort_by_key(|part| part.offset);
                parts
            }
            Self::Elsewhere | Self::Unknown | Self::Nowhere => Vec::new(),
        }
    }
}
