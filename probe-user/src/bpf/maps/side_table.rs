//! Tables for data that does not fit into a cookie. A program looks into them by the index in its
//! site's cookie.

use crate::bpf::{BpfError, sys};
use ctrace_common::{Comparison, Condition, JumpTarget, NO_INDEX, PythonValues, ValueSources};
use std::{
    marker::PhantomData,
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
};

/// An element of a table.
pub(crate) trait Element {
    /// The name of the elements for people, in the plural.
    const WHAT: &'static str;
    /// The number of elements that the map holds.
    const LIMIT: usize;

    /// Returns the bytes as in `docs/wire-format.md`.
    fn to_bytes(&self) -> impl AsRef<[u8]>;
}

/// The number of elements of the map in the eBPF programs.
pub(crate) const JUMPS_LIMIT: usize = 16384;
/// The number of elements that the map gets if values are asked for.
pub(crate) const VALUES_LIMIT: usize = 8192;
/// The number of elements that the map gets if there will be conditions.
pub(crate) const CONDITIONS_LIMIT: usize = 1024;

impl Element for JumpTarget {
    const WHAT: &'static str = "indirect jumps";
    const LIMIT: usize = JUMPS_LIMIT;

    fn to_bytes(&self) -> impl AsRef<[u8]> {
        let mut bytes = [0; size_of::<Self>()];
        let (inside, target) = bytes.split_at_mut(size_of_val(&self.inside));
        for (place, word) in inside.chunks_exact_mut(8).zip(self.inside.as_flattened()) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        target.copy_from_slice(&self.target.to_bytes());
        bytes
    }
}

impl Element for ValueSources {
    const WHAT: &'static str = "places with values";
    const LIMIT: usize = VALUES_LIMIT;

    fn to_bytes(&self) -> impl AsRef<[u8]> {
        let mut bytes = [0; size_of::<Self>()];
        let Self { count, slots, forms, fields, condition, lengths, python, sources } = self;
        let PythonValues { name, file, line, reserved: _ } = *python;
        bytes[..4].copy_from_slice(&count.to_le_bytes());
        bytes[4..8].copy_from_slice(&slots.to_le_bytes());
        bytes[8..16].copy_from_slice(&forms.to_le_bytes());
        bytes[16..28].copy_from_slice(fields);
        bytes[28..32].copy_from_slice(&condition.to_le_bytes());
        bytes[32..44].copy_from_slice(lengths);
        bytes[44..47].copy_from_slice(&[name, file, line]);
        for (place, source) in bytes[48..].chunks_exact_mut(16).zip(sources) {
            place.copy_from_slice(&source.to_bytes());
        }
        bytes
    }
}

impl Element for Condition {
    const WHAT: &'static str = "functions with a condition";
    const LIMIT: usize = CONDITIONS_LIMIT;

    fn to_bytes(&self) -> impl AsRef<[u8]> {
        let mut bytes = [0; size_of::<Self>()];
        bytes[..4].copy_from_slice(&self.count.to_le_bytes());
        let each = bytes[8..].chunks_exact_mut(size_of::<Comparison>());
        for (place, comparison) in each.zip(&self.comparisons) {
            let Comparison { operand, number, flip, relation, kind, begins, reserved: _, text } =
                comparison;
            place[..16].copy_from_slice(&operand.to_bytes());
            place[16..24].copy_from_slice(&number.to_le_bytes());
            place[24..32].copy_from_slice(&flip.to_le_bytes());
            place[32..35].copy_from_slice(&[*relation, *kind, *begins]);
            for (word, place) in text.iter().zip(place[40..].as_chunks_mut().0) {
                *place = word.to_le_bytes();
            }
        }
        bytes
    }
}

/// A table and the number of its used elements. Nothing is ever given back: links name its
/// elements.
pub(crate) struct SideTable<E> {
    map: Arc<OwnedFd>,
    used: usize,
    elements: PhantomData<E>,
}

impl<E: Element> SideTable<E> {
    pub(crate) fn new(map: Arc<OwnedFd>) -> Self {
        const { assert!(E::LIMIT <= NO_INDEX as usize, "each has an index") };
        Self { map, used: 0, elements: PhantomData }
    }

    /// Adds `elements` in a row and returns the index of the first.
    pub(crate) fn add(&mut self, elements: &[E]) -> Result<u16, BpfError> {
        let first = self.used;
        let needed = first + elements.len();
        if needed > E::LIMIT {
            return Err(BpfError::TooMany { what: E::WHAT, needed, limit: E::LIMIT });
        }
        for (index, element) in (first..).zip(elements) {
            sys::map_update(self.map.as_fd(), index as u32, element.to_bytes().as_ref())
                .map_err(|source| BpfError::Map { what: E::WHAT, source })?;
        }
        self.used = needed;
        Ok(first as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::fake;
    use ctrace_common::{Operand, SIGN};
    use std::fs::File;

    fn jumps() -> SideTable<JumpTarget> {
        SideTable::new(Arc::new(File::open("/dev/null").unwrap().into()))
    }

    const OPERAND: Operand = Operand {
        displacement: 9,
        base: 10,
        index: 11,
        scale: 12,
        memory: 13,
        relative: 14,
        size: 15,
        signed: 16,
        shift: 17,
    };
    const OPERAND_WORDS: [i64; 2] = [9, 0x1110_0f0e_0d0c_0b0a];

    fn words(element: &impl Element) -> Vec<i64> {
        let bytes = element.to_bytes();
        let (words, rest) = bytes.as_ref().as_chunks();
        assert!(rest.is_empty());
        words.iter().map(|word| i64::from_le_bytes(*word)).collect()
    }

    #[test]
    fn the_bytes_are_those_of_the_structures() {
        let jump = JumpTarget { inside: [[-1, 2], [3, 4], [5, 6], [7, 8]], target: OPERAND };
        assert_eq!(words(&jump), [&[-1, 2, 3, 4, 5, 6, 7, 8][..], &OPERAND_WORDS].concat());
        let forms = 3 << 40;
        let fields = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let mut values = ValueSources {
            count: 2,
            slots: 5,
            forms,
            fields,
            condition: 6,
            lengths: [7, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            python: PythonValues { name: 2, file: 3, line: 4, reserved: 0 },
            ..ValueSources::default()
        };
        values.sources[1] = OPERAND;
        let mut expected = vec![0; size_of::<ValueSources>() / 8];
        expected[..4].copy_from_slice(&[
            5 << 32 | 2,
            forms as i64,
            0x0807_0605_0403_0201,
            6 << 32 | 0x0c0b_0a09,
        ]);
        expected[4..6].copy_from_slice(&[0x0101_0101_0101_0107, 0x0004_0302_0101_0101]);
        expected[8..10].copy_from_slice(&OPERAND_WORDS);
        assert_eq!(words(&values), expected);
        let mut condition = Condition { count: 3, ..Condition::default() };
        let (number, flip, text) = (4, SIGN, [5, 6, 7, 8]);
        let (relation, kind, begins) = (9, 10, 11);
        condition.comparisons[1] = Comparison {
            operand: OPERAND,
            number,
            flip,
            relation,
            kind,
            begins,
            text,
            ..Comparison::default()
        };
        let mut expected = vec![0; size_of::<Condition>() / 8];
        expected[0] = 3;
        expected[10..12].copy_from_slice(&OPERAND_WORDS);
        expected[12..19].copy_from_slice(&[4, i64::MIN, 0x0b_0a_09, 5, 6, 7, 8]);
        assert_eq!(words(&condition), expected);
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
        let error = jumps.add(&too_many).unwrap_err();
        assert_eq!(
            error.to_string(),
            "too many indirect jumps (16385, at most 16384); select fewer functions"
        );
        assert_eq!(jumps.add(&[JumpTarget::default()]).unwrap(), 0);
    }

    #[test]
    fn a_refusal_is_told() {
        let _fake = fake::Fake::failing(libc::E2BIG);
        let error = jumps().add(&[JumpTarget::default()]).unwrap_err();
        assert!(matches!(error, BpfError::Map { what: "indirect jumps", .. }), "{error}");
    }
}
