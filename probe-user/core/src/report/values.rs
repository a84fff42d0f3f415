//! Values of calls in a report: names and numbers.

use super::render::clean::clean;
use crate::units::{Nanos, Pid, Tid};
use crate::values::Value;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// The values of one call, in the order of the probe. In JSON they are an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedValues(pub Vec<(Arc<str>, Option<Value>)>);

impl NamedValues {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for NamedValues {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            match value {
                Some(Value::Signed(value)) => map.serialize_entry(name, value)?,
                Some(Value::Unsigned(value)) => map.serialize_entry(name, value)?,
                None => map.serialize_entry(name, &())?,
            }
        }
        map.end()
    }
}

/// Displays `arg0=17 arg1=?`: a value that could not be read is a question mark. The target chooses
/// the names.
impl std::fmt::Display for NamedValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, (name, value)) in self.0.iter().enumerate() {
            let name = clean(name);
            let gap = if place == 0 { "" } else { " " };
            match value {
                Some(value) => write!(f, "{gap}{name}={value}")?,
                None => write!(f, "{gap}{name}=?")?,
            }
        }
        Ok(())
    }
}

/// A call that has values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PointReport {
    /// Index in `functions` of the report.
    pub function: usize,
    pub name: Arc<str>,
    pub pid: Option<Pid>,
    pub tid: Option<Tid>,
    /// Name of the thread.
    pub thread: Option<Arc<str>>,
    pub start_ns: Nanos,
    pub values: NamedValues,
}

/// The first calls with values in order of time, and the number of further ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PointsReport {
    pub first: Vec<PointReport>,
    pub more: u64,
}

impl PointsReport {
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}
