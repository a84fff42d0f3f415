//! The row of a function in JSON: its names, then each number of the registry under its key.

use super::FunctionReport;
use super::numbers::{NUMBERS, Number};
use crate::units::Nanos;
use serde::ser::{Serialize, SerializeMap, Serializer};

impl Serialize for FunctionReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        for (key, name) in [("short_name", &self.short_name), ("full_name", &self.full_name)] {
            if let Some(name) = name {
                map.serialize_entry(key, name)?;
            }
        }
        map.serialize_entry("aliases", &self.aliases)?;
        map.serialize_entry("object", &self.object)?;
        map.serialize_entry("file", &self.file)?;
        map.serialize_entry("line", &self.line)?;
        map.serialize_entry("kind", &self.kind)?;
        map.serialize_entry("group", &self.group)?;
        for numbers in NUMBERS.chunk_by(|a, b| a.parent == b.parent) {
            match numbers[0].parent {
                None => write(numbers, self, &mut map)?,
                Some(parent) => map.serialize_entry(parent, &Nested { numbers, row: self })?,
            }
        }
        if let Some(sampled) = &self.sampled {
            map.serialize_entry("sampled", sampled)?;
        }
        if self.until_tail_call {
            map.serialize_entry("until_tail_call", &true)?;
        }
        if self.callees_left_out > 0 {
            map.serialize_entry("callees_left_out", &self.callees_left_out)?;
        }
        if !self.restored.is_none() {
            map.serialize_entry("restored", &self.restored)?;
        }
        if self.idle_ns > Nanos::ZERO {
            map.serialize_entry("idle_ns", &self.idle_ns)?;
        }
        if self.folded {
            map.serialize_entry("folded", &true)?;
        }
        if self.joined_by_order {
            map.serialize_entry("joined_by_order", &true)?;
        }
        if self.is_async {
            map.serialize_entry("async", &true)?;
        }
        if let Some(condition) = &self.condition {
            map.serialize_entry("condition", condition)?;
        }
        if !self.inlined.is_empty() {
            map.serialize_entry("inlined", &self.inlined)?;
        }
        if let Some(wait) = &self.wait {
            map.serialize_entry("wait", wait)?;
        }
        if let Some(point) = &self.point {
            map.serialize_entry("point", point)?;
        }
        if let Some(colour) = &self.colour {
            map.serialize_entry("colour", colour)?;
        }
        if let Some(probes) = &self.probes {
            map.serialize_entry("probes", probes)?;
        }
        map.end()
    }
}

/// Numbers in a nested object.
struct Nested<'a> {
    numbers: &'a [Number],
    row: &'a FunctionReport,
}

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.numbers.len()))?;
        write(self.numbers, self.row, &mut map)?;
        map.end()
    }
}

/// Writes these numbers of a row as entries of an object.
pub(super) fn write<M: SerializeMap>(
    numbers: &[Number],
    row: &FunctionReport,
    map: &mut M,
) -> Result<(), M::Error> {
    numbers.iter().try_for_each(|number| (number.of)(row).entry(number.json_key(), map))
}
