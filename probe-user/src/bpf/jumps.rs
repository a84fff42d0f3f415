//! The table of indirect jumps that the exit program looks into.

use super::{BpfError, sys};
use ctrace_common::JumpTarget;
use std::{
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
};

/// As many as the map in the eBPF programs holds; fewer than `NO_JUMP`.
pub(crate) const JUMPS_LIMIT: usize = 16384;

pub(super) struct Jumps {
    map: Arc<OwnedFd>,
    used: usize,
}

impl Jumps {
    pub(super) fn new(map: Arc<OwnedFd>) -> Self {
        Self { map, used: 0 }
    }

    /// Adds `jumps` in a row; says the index of the first.
    pub(super) fn add(&mut self, jumps: &[JumpTarget]) -> Result<u16, BpfError> {
        let first = self.used;
        let needed = first + jumps.len();
        if needed > JUMPS_LIMIT {
            return Err(BpfError::TooManyJumps { needed, limit: JUMPS_LIMIT });
        }
        for (index, jump) in (first..).zip(jumps) {
            sys::map_update(self.map.as_fd(), index as u32, &wire(jump))
                .map_err(|source| BpfError::Map { what: "jumps", source })?;
        }
        self.used = needed;
        Ok(first as u16)
    }
}

/// The bytes of a [`JumpTarget`], as `docs/wire-format.md` says.
fn wire(jump: &JumpTarget) -> [u8; size_of::<JumpTarget>()] {
    let mut bytes = [0; size_of::<JumpTarget>()];
    let words = jump.inside.as_flattened().iter().chain([&jump.displacement]);
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let rest = [jump.base, jump.index, jump.scale, jump.memory, jump.relative];
    bytes[72..77].copy_from_slice(&rest);
    bytes
}

#[cfg(test)]
mod tests {
    use super::{super::sys::fake, *};
    use std::fs::File;

    fn jumps() -> Jumps {
        Jumps::new(Arc::new(File::open("/dev/null").unwrap().into()))
    }

    #[test]
    fn the_bytes_are_those_of_the_structure() {
        let jump = JumpTarget {
            inside: [[-1, 2], [3, 4], [5, 6], [7, 8]],
            displacement: 9,
            base: 10,
            index: 11,
            scale: 12,
            memory: 13,
            relative: 14,
            reserved: [0; 3],
        };
        let words: Vec<_> = wire(&jump)
            .chunks_exact(8)
            .map(|word| i64::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, [-1, 2, 3, 4, 5, 6, 7, 8, 9, 0x0000_000e_0d0c_0b0a]);
    }

    #[test]
    fn indices_go_on() {
        let _fake = fake::Fake::new(|_| Ok(0));
        let mut jumps = jumps();
        assert_eq!(jumps.add(&[JumpTarget::default(); 3]).unwrap(), 0);
        assert_eq!(jumps.add(&[JumpTarget::default(); 2]).unwrap(), 3);
        assert_eq!(jumps.add(&[]).unwrap(), 5);
    }

    #[test]
    fn a_full_table_takes_none_of_them() {
        let _fake = fake::Fake::new(|_| Ok(0));
        let mut jumps = jumps();
        let too_many = vec![JumpTarget::default(); JUMPS_LIMIT + 1];
        assert!(matches!(jumps.add(&too_many), Err(BpfError::TooManyJumps { .. })));
        assert_eq!(jumps.add(&[JumpTarget::default()]).unwrap(), 0);
    }

    #[test]
    fn a_refusal_is_told() {
        let _fake = fake::Fake::failing(libc::E2BIG);
        let error = jumps().add(&[JumpTarget::default()]).unwrap_err();
        assert!(matches!(error, BpfError::Map { what: "jumps", .. }), "{error}");
    }
}
