//! The names of the rows of a table, each with its tone: that of the whole name, however short it becomes.

use crate::ui::output::style::Tone;
use crate::ui::text::names::width;
use ctrace_core::report::FunctionReport;

#[derive(Default)]
pub(crate) struct RowNames {
    pub(crate) texts: Vec<String>,
    pub(crate) tones: Vec<Tone>,
}

impl RowNames {
    /// Names functions: `label` has the text.
    pub(crate) fn of(list: &[&FunctionReport], label: impl Fn(&FunctionReport) -> String) -> Self {
        let named = list.iter().map(|row| (label(row), row.colour));
        named.map(|(text, own)| (Tone::of(&text, own), text)).collect()
    }

    /// Returns the width of the longest, `least` at least.
    pub(crate) fn width(&self, least: usize) -> usize {
        self.texts.iter().map(|name| width(name)).fold(least, usize::max)
    }
}

impl FromIterator<(Tone, String)> for RowNames {
    fn from_iter<T: IntoIterator<Item = (Tone, String)>>(named: T) -> Self {
        let (tones, texts) = named.into_iter().unzip();
        Self { texts, tones }
    }
}

impl From<Vec<String>> for RowNames {
    fn from(texts: Vec<String>) -> Self {
        texts.into_iter().map(|text| (Tone::of_function(&text), text)).collect()
    }
}
