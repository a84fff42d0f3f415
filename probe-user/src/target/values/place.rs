//! Where the bytes of a value are: in memory, in a register, or apart in several places.

use super::abi::Position;
use crate::target::debug_info::passed::{Parts, Passed};
use ctrace_common::Operand;

/// Bytes of a register.
pub(super) const REGISTER: u64 = 8;

/// The place of a value, or of a part of it.
#[derive(Clone)]
pub(super) enum Place {
    Nowhere,
    /// In memory, as a whole.
    Memory(Operand),
    Apart {
        /// The bytes before each piece, its bytes, and the source of its first 8 bytes.
        pieces: Vec<(u64, u64, Operand)>,
        /// The bytes before the part.
        from: u64,
    },
}

impl Place {
    /// Returns the place of what is in one register.
    pub(super) fn register(base: Operand) -> Self {
        Self::Apart { pieces: vec![(0, REGISTER, base)], from: 0 }
    }

    /// Returns the place of what is in two registers.
    pub(super) fn pair(first: Operand, second: Operand) -> Self {
        let pieces = vec![(0, REGISTER, first), (REGISTER, REGISTER, second)];
        Self::Apart { pieces, from: 0 }
    }

    pub(super) fn parts(parts: &Parts) -> Self {
        let pieces = parts.iter().flatten().map(|part| {
            let base = match part.from {
                Passed::Register(number) => Position::Register(number).base(),
                Passed::Stack(slot) => Position::Stack(slot).base(),
            };
            let shift = base.shift + part.shift;
            (part.offset, part.bytes.into(), Operand { shift, ..base })
        });
        Self::Apart { pieces: pieces.collect(), from: 0 }
    }

    pub(super) fn is_memory(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// Returns the place of a part, which begins behind so many bytes.
    pub(super) fn behind(&self, offset: u64) -> Option<Self> {
        Some(match self {
            Self::Nowhere => return None,
            Self::Memory(operand) => Self::Memory(operand.behind(offset)?),
            Self::Apart { pieces, from } => {
                Self::Apart { pieces: pieces.clone(), from: from.checked_add(offset)? }
            }
        })
    }

    /// Returns whether some of its first bytes are anywhere.
    pub(super) fn has_any(&self, bytes: u64) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Memory(_) => true,
            Self::Apart { pieces, from } => pieces.iter().any(|(before, own, _)| {
                before.saturating_add(*own) > *from && *before < from.saturating_add(bytes)
            }),
        }
    }

    /// Returns the source of so many bytes, so far into it. `None` if they are not in one piece.
    pub(super) fn source(&self, offset: u64, bytes: u64) -> Option<Operand> {
        match self {
            Self::Nowhere => None,
            Self::Memory(operand) => operand.behind(offset),
            Self::Apart { pieces, from } => {
                let from = from.checked_add(offset)?;
                pieces.iter().find_map(|(before, own, operand)| {
                    let inside = from.checked_sub(*before)?;
                    let fits = inside.checked_add(bytes)? <= *own;
                    fits.then(|| match operand.memory {
                        0 => {
                            let shift = u64::from(operand.shift) + 8 * inside;
                            Some(Operand { shift: u8::try_from(shift).ok()?, ..*operand })
                        }
                        _ => operand.behind(inside + u64::from(operand.shift) / 8),
                    })?
                })
            }
        }
    }
}
