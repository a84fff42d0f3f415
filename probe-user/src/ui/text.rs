//! Running text: wrapped at words, with the lines after the first set in.

use super::names::width;
use super::style::{Style, Tone};

/// `text` in lines that fit, each ended.
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

/// The title of a view.
pub(crate) fn title(text: &str) -> String {
    format!("{}\n", Tone::Title.mark(text))
}

/// What stands below a table that does not show all its rows.
pub(crate) fn left_out(count: usize, one: &str, many: &str, style: &Style) -> String {
    if count == 0 {
        return String::new();
    }
    let what = super::units::counted(count as u64, one, many);
    paragraph(&format!("… {what} not shown (--top, --min-percent)"), Tone::Dim, style)
}
