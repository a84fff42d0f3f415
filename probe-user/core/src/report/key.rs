//! A row's value in a column, for sorting and for showing.

use serde::ser::SerializeMap;
use std::cmp::Ordering;
use std::fmt;

/// A value that rows are compared by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Key<'a> {
    Text(&'a str),
    Count(Option<u64>),
    Real(Option<f64>),
}

impl Key<'_> {
    /// A whole number, if there is one.
    pub fn whole(&self) -> Option<u64> {
        match *self {
            Self::Count(n) => n,
            Self::Text(_) | Self::Real(_) => None,
        }
    }

    /// A number, if there is one.
    pub fn real(&self) -> Option<f64> {
        match *self {
            Self::Text(_) => None,
            Self::Count(n) => n.map(|n| n as f64),
            Self::Real(n) => n,
        }
    }

    /// Writes it as an entry of a JSON object.
    pub(super) fn entry<M: SerializeMap>(&self, key: &str, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Text(text) => map.serialize_entry(key, text),
            Self::Count(n) => map.serialize_entry(key, n),
            Self::Real(n) => map.serialize_entry(key, n),
        }
    }

    /// Order in a table: text from A to Z, numbers from large to small, what is absent last.
    pub fn in_table(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Count(a), Self::Count(b)) => b.cmp(a),
            (Self::Real(a), Self::Real(b)) => match (a, b) {
                (Some(a), Some(b)) => b.total_cmp(a),
                _ => b.is_some().cmp(&a.is_some()),
            },
            _ => Ordering::Equal,
        }
    }
}

/// As CSV has it: nothing for what is absent.
impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(Some(n)) => n.fmt(f),
            Self::Real(Some(n)) => n.fmt(f),
            Self::Count(None) | Self::Real(None) => Ok(()),
        }
    }
}
