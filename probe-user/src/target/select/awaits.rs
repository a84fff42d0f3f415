//! What may yet come and have what a target lacks, so that a selection that matches nothing is no error.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// Libraries that the target loads, and programs that it executes itself.
    Loaded,
    /// The same, and the programs that it starts.
    Started,
}

impl Awaits {
    /// Returns the reason to await something, in front of what is awaited. What a wrapper starts is followed
    /// without an option.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Loaded => "because of --wait, ",
            Self::Started => "",
        }
    }

    /// Names what is searched later.
    pub(super) fn searched(self) -> &'static str {
        match self {
            Self::Loaded => "the libraries that it loads and the programs that it executes",
            Self::Started => "the programs that it starts",
        }
    }

    /// Names where it was looked for when all is over.
    pub(crate) fn looked_in(self) -> &'static str {
        match self {
            Self::Loaded => "in what the process loaded and executed",
            Self::Started => "in the program and in those that it started",
        }
    }
}
