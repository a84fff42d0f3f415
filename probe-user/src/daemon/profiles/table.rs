//! Numbers things in the order in which they come, each once.

use std::{collections::HashMap, hash::Hash};

pub(super) struct Table<T> {
    places: HashMap<T, u64>,
    in_order: Vec<T>,
}

impl<T: Clone + Default + Eq + Hash> Table<T> {
    /// Makes one whose first thing, of number 0, stands for none.
    pub(super) fn new() -> Self {
        let mut table = Self { places: HashMap::new(), in_order: Vec::new() };
        table.place(T::default());
        table
    }

    /// Returns the number of a thing.
    pub(super) fn place(&mut self, thing: T) -> u64 {
        let next = self.in_order.len() as u64;
        *self.places.entry(thing).or_insert_with_key(|thing| {
            self.in_order.push(thing.clone());
            next
        })
    }

    /// Returns the thing with this number.
    pub(super) fn get(&self, place: u64) -> Option<&T> {
        self.in_order.get(place as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.in_order.iter()
    }
}
