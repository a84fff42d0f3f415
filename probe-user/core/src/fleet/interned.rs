//! Keeps the texts of a file, each once.

use crate::formats::labels;
use parquet::data_type::ByteArray;
use std::collections::HashMap;
use std::sync::Arc;

/// Returns a text that is harmless, and not too long.
pub(super) fn clean(bytes: &ByteArray) -> Arc<str> {
    labels::text(&String::from_utf8_lossy(bytes.data())).into()
}

/// The texts of a row by which something is known.
pub(super) trait Texts: Clone + PartialEq {
    /// Returns all bytes in one piece.
    fn packed(&self) -> Vec<u8>;
}

impl Texts for ByteArray {
    fn packed(&self) -> Vec<u8> {
        self.data().to_vec()
    }
}

impl<const N: usize> Texts for [Option<ByteArray>; N] {
    fn packed(&self) -> Vec<u8> {
        let mut packed = Vec::new();
        for text in self {
            let length = text.as_ref().map_or(u64::MAX, |text| text.len() as u64);
            packed.extend(length.to_le_bytes());
            packed.extend(text.iter().flat_map(|text| text.data()));
        }
        packed
    }
}

/// Values that stand for texts. Equal texts are usually one after the other, and are cleaned once.
pub(super) struct Interned<K, V> {
    known: HashMap<Vec<u8>, V>,
    last: Option<(K, V)>,
}

impl<K, V> Default for Interned<K, V> {
    fn default() -> Self {
        Self { known: HashMap::new(), last: None }
    }
}

/// Limit of texts that are kept. Those beyond are cleaned anew.
const MOST_TEXTS: usize = 1 << 16;

impl<K: Texts, V: Clone> Interned<K, V> {
    pub(super) fn get(&mut self, key: K, make: impl FnOnce(&K) -> V) -> V {
        if let Some((_, value)) = self.last.as_ref().filter(|(last, _)| *last == key) {
            return value.clone();
        }
        if self.known.len() >= MOST_TEXTS {
            self.known.clear();
        }
        let value = self.known.entry(key.packed()).or_insert_with(|| make(&key)).clone();
        self.last = Some((key, value.clone()));
        value
    }
}

impl Interned<ByteArray, Arc<str>> {
    pub(super) fn text(&mut self, bytes: Option<&ByteArray>) -> Option<Arc<str>> {
        Some(self.get(bytes?.clone(), clean))
    }
}
