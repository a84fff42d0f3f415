//! The kinds of links, and the choice among them.

use serde::Serialize;
use std::fmt;

/// The link that the user asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkChoice {
    /// The cheapest that the kernel has.
    #[default]
    Auto,
    /// For roles without return probes the same as `Multi`.
    Session,
    Multi,
    Perf,
}

/// The link that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    Session,
    Multi,
    Perf,
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::Multi => "multi",
            Self::Perf => "perf",
        })
    }
}
