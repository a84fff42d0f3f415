//! Pairs of USDT probes by which the runtimes of languages tell of every method. Which arguments are the
//! method's name is in the runtimes' manuals, and the same in all their versions.

use crate::target::values::{
    abi::{Position, Type},
    asked::{AskedArgument, AskedPlace},
};

/// A text: its name, the number of the argument, and of the one that has its length.
type NamePart = (&'static str, u8, Option<u8>);

/// A pair that tells of methods.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Methods {
    provider: &'static str,
    call: &'static str,
    parts: [NamePart; 2],
    /// What stands between the two texts in a name.
    pub(crate) between: &'static str,
}

const RUBY: [NamePart; 2] = [("class", 0, None), ("method", 1, None)];

const ALL: [Methods; 4] = [
    Methods { provider: "ruby", call: "method", parts: RUBY, between: "#" },
    Methods { provider: "ruby", call: "cmethod", parts: RUBY, between: "#" },
    Methods {
        provider: "python",
        call: "function",
        parts: [("file", 0, None), ("function", 1, None)],
        between: ":",
    },
    Methods {
        provider: "hotspot",
        call: "method",
        parts: [("class", 1, Some(2)), ("method", 3, Some(4))],
        between: ".",
    },
];

impl Methods {
    /// Returns the texts, as they would be asked for.
    pub(crate) fn texts(&self) -> [AskedArgument; 2] {
        self.parts.map(|(name, place, length)| AskedArgument {
            name: name.to_owned(),
            place: AskedPlace::At(Position::Register(place), Type::Text),
            length,
        })
    }
}

/// Returns what names the calls of a pair, if it tells of methods.
pub(crate) fn named(provider: &str, call: &str) -> Option<&'static Methods> {
    ALL.iter().find(|of| (of.provider, of.call) == (provider, call))
}
