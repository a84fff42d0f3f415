//! The levels of messages.

use crate::function::{FunctionInfo, FunctionKind};

/// The weight of a message, lightest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    /// Returns the level of a function's messages, as far as it is known. A USDT probe has none of its
    /// own: the last word of its name may be one, as in `log__warn`.
    pub(crate) fn of(info: &FunctionInfo) -> Option<Self> {
        match info.kind {
            FunctionKind::Usdt => Self::of_word(info.name.rsplit(['_', '-']).next()?),
            FunctionKind::Function | FunctionKind::Marker => None,
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        const WORDS: [(&str, Level); 9] = [
            ("trace", Level::Trace),
            ("debug", Level::Debug),
            ("info", Level::Info),
            ("warn", Level::Warn),
            ("warning", Level::Warn),
            ("err", Level::Error),
            ("error", Level::Error),
            ("critical", Level::Error),
            ("fatal", Level::Error),
        ];
        WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known)).map(|(_, level)| *level)
    }

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
    fn the_last_word_of_a_probe_may_be_its_level() {
        let level = |kind, name: &str| {
            Level::of(&FunctionInfo { kind, ..FunctionInfo::new(name, "program") })
        };
        for (name, expected) in [
            ("log__warn", Some(Level::Warn)),
            ("log-ERROR", Some(Level::Error)),
            ("info", Some(Level::Info)),
            ("error__count", None),
            ("backtrace", None),
            ("", None),
        ] {
            assert_eq!(level(FunctionKind::Usdt, name), expected, "{name}");
        }
        assert_eq!(level(FunctionKind::Function, "log_warn"), None);
        assert!(Level::Warn > Level::Info);
    }
}
