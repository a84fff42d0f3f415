//! Words and numbers in their printed form. This file wraps running text at words, with the lines
//! after the first indented.

pub(crate) mod ascii;
mod by_words;
pub(crate) mod clock;
pub(crate) mod distinct;
pub(crate) mod names;
mod namespaces;
pub(crate) mod path;
pub(crate) mod units;

use crate::ui::output::style::{Style, Tone};
use crate::ui::text::names::width;

/// Joins the first of some names, and tells how many more there are of `all`.
pub(crate) fn first_of<N: AsRef<str>>(names: &[N], all: usize) -> String {
    let shown = names.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    match all.saturating_sub(names.len()) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Wraps `text` into lines, each with its line feed.
pub(crate) fn paragraph(text: &str, tone: Tone, style: &Style) -> String {
    let room = style.width.unwrap_or(usize::MAX);
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && width(&line) + 1 + width(word) > room {
            out += &tone.mark(&line);
            out.push('\n');
            line = format!("  {word}");
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
    }
    out += &tone.mark(&line);
    out.push('\n');
    out
}

/// Joins the first names, and the count of the rest.
pub(crate) fn first_few(shown: usize, names: &[String]) -> String {
    first_of(&names[..shown.min(names.len())], names.len())
}

/// Formats the title of a view.
pub(crate) fn title(text: &str) -> String {
    format!("{}\n", Tone::Title.mark(text))
}

/// Returns the line below a table that omits rows.
pub(crate) fn left_out(count: usize, one: &str, many: &str, style: &Style) -> String {
    not_shown(count, one, many, " (--top, --min-percent)", style)
}

/// Returns the same with another remedy.
pub(crate) fn not_shown(
    count: usize,
    one: &str,
    many: &str,
    remedy: &str,
    style: &Style,
) -> String {
    if count == 0 {
        return String::new();
    }
    let what = crate::ui::text::units::counted(count as u64, one, many);
    paragraph(&format!("{what} not shown{remedy}"), Tone::Dim, style)
}
