//! How a rendering may look: its width and whether it has colour. A value, so that rendering is
//! pure; [`super::terminal`] finds out what is right for an output.

/// What the output can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; nothing is shortened without one.
    pub width: Option<usize>,
    pub colour: bool,
}

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    #[default]
    Plain,
    Title,
    Heading,
    Group,
    Name,
    Dim,
    /// A share that stands out.
    Warm,
    /// The share to look at first.
    Hot,
    Warning,
}

impl Tone {
    /// The tone of a share of time.
    pub(super) fn of_percent(percent: f64) -> Self {
        if percent >= 20.0 {
            Self::Hot
        } else if percent >= 5.0 {
            Self::Warm
        } else if percent >= 0.1 {
            Self::Plain
        } else {
            Self::Dim
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Title | Self::Heading => "1",
            Self::Group => "36",
            Self::Name => "32",
            Self::Dim => "2",
            Self::Warm => "33",
            Self::Hot => "1;31",
            Self::Warning => "1;33",
        }
    }
}

impl Style {
    /// `text` in the colour of `tone`.
    pub(super) fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.colour || tone == Tone::Plain || text.is_empty() {
            text.to_owned()
        } else {
            format!("\x1b[{}m{text}\x1b[0m", tone.code())
        }
    }
}
