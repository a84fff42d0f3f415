//! The names of the rows of a table, each with its tone: that of the whole name, however short it becomes.

use crate::ui::output::style::Tone;
use crate::ui::text::names::{cut_start, width};
use ctrace_core::report::FunctionReport;
use ctrace_core::report::render::clean::clean;
use std::collections::HashMap;

const PLACE_ROOM: usize = 24;

#[derive(Default)]
pub(crate) struct RowNames {
    pub(crate) texts: Vec<String>,
    pub(crate) tones: Vec<Tone>,
}

impl RowNames {
    /// Names functions: `label` has the text. Functions of one name, such as those of two files, have their
    /// places behind it.
    pub(crate) fn of(list: &[&FunctionReport], label: impl Fn(&FunctionReport) -> String) -> Self {
        let labels: Vec<String> = list.iter().map(|row| label(row)).collect();
        let mut rows = HashMap::<&str, usize>::new();
        labels.iter().for_each(|label| *rows.entry(label).or_default() += 1);
        let named = list.iter().zip(&labels).map(|(row, label)| {
            let place = Some(place(row)).filter(|place| rows[&**label] > 1 && !place.is_empty());
            let text = place.map_or_else(|| label.clone(), |place| format!("{label} [{place}]"));
            (Tone::of(label, row.colour), text)
        });
        named.collect()
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

/// Returns the file and the line, or the object if they are not known.
pub(crate) fn place(row: &FunctionReport) -> String {
    let Some(file) = &row.file else { return cut_start(&clean(&row.object), PLACE_ROOM) };
    let file = clean(file);
    let name = file.rsplit_once('/').map_or(&*file, |(_, name)| name);
    let line = row.line.map_or_else(String::new, |line| format!(":{line}"));
    cut_start(&format!("{name}{line}"), PLACE_ROOM)
}
