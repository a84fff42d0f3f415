//! The formats that the shown data is written in.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
    Csv,
}

impl Format {
    pub(super) fn of_key(c: char) -> Option<Self> {
        match c {
            't' => Some(Self::Text),
            'j' => Some(Self::Json),
            'c' => Some(Self::Csv),
            _ => None,
        }
    }

    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Text => "txt",
            Self::Json => "json",
            Self::Csv => "csv",
        }
    }
}
