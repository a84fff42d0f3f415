//! Points in time of which markers tell: messages, numbers over time, frame marks.

use crate::function::FunctionInfo;
use crate::units::FuncId;
use ctrace_common::SiteEntry;
use serde::{Deserialize, Serialize};

/// The shape of a marker without an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum PointShape {
    /// A text.
    Message {
        /// How much it matters, if the program says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<Level>,
    },
    /// A number that changes over time.
    Plot,
    /// A mark between two frames.
    Frame,
    /// Anything else, or something that a later ctrace added.
    #[serde(other)]
    Other,
}

/// How much a message matters. There are no others, as a reader of a recording could not know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl PointShape {
    /// Returns the shape that an entry of `ctrace_sites` has, by its two bytes.
    pub fn from_file(shape: u8, level: u8) -> Self {
        match shape {
            SiteEntry::MESSAGE => Self::Message { level: Level::from_file(level) },
            SiteEntry::PLOT => Self::Plot,
            SiteEntry::FRAME => Self::Frame,
            _ => Self::Other,
        }
    }

    /// Returns the shape of a function that is a marker's point.
    pub(crate) fn of(functions: &[FunctionInfo], function: FuncId) -> Option<Self> {
        functions.get(function.index())?.point
    }

    /// Returns what people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Message { .. } => "message",
            Self::Plot => "plot",
            Self::Frame => "frame",
            Self::Other => "point",
        }
    }

    /// Returns the level of a message that has one.
    pub fn level(self) -> Option<Level> {
        match self {
            Self::Message { level } => level,
            Self::Plot | Self::Frame | Self::Other => None,
        }
    }
}

impl Level {
    /// Every level, the least first.
    pub const ALL: [Self; 5] = [Self::Trace, Self::Debug, Self::Info, Self::Warn, Self::Error];

    fn from_file(level: u8) -> Option<Self> {
        Self::ALL.get(usize::from(level).checked_sub(1)?).copied()
    }

    /// Returns its name in small letters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_file_have_a_meaning() {
        let levels: Vec<_> =
            (0..=6).map(|level| PointShape::from_file(1, level).level().map(Level::name)).collect();
        let names = [None, Some("trace"), Some("debug"), Some("info"), Some("warn"), Some("error")];
        assert_eq!(levels[..6], names);
        assert_eq!(levels[6], None, "of a later version");
        let shapes = [0, 1, 2, 3, 4].map(|shape| PointShape::from_file(shape, 3).name());
        assert_eq!(shapes, ["point", "message", "plot", "frame", "point"]);
    }

    #[test]
    fn a_recording_keeps_them_and_later_shapes_do_no_harm() {
        for (shape, text) in [
            (
                PointShape::Message { level: Some(Level::Warn) },
                r#"{"shape":"message","level":"warn"}"#,
            ),
            (PointShape::Message { level: None }, r#"{"shape":"message"}"#),
            (PointShape::Plot, r#"{"shape":"plot"}"#),
        ] {
            assert_eq!(serde_json::to_string(&shape).expect("JSON"), text);
            assert_eq!(serde_json::from_str::<PointShape>(text).expect("a shape"), shape);
        }
        let later = serde_json::from_str::<PointShape>(r#"{"shape":"image","width":3}"#);
        assert_eq!(later.expect("a shape"), PointShape::Other);
    }
}
