//! The help screen: the keys from their table, and the columns.

use super::paragraph;
use crate::{
    top::{keys::BINDINGS, model::columns::TopColumn},
    ui::{notes::marks::Mark, text::names},
};
use ratatui::text::Line;

const TREND: &str = "how the column sorted by went in the last intervals, each against its largest";

const ABSENT_IS: &str = "– means that a number is not known: no call with a known duration ended in this time. Where \
                         the cost of probes was measured (ctrace doctor --calibrate), times in the \
                         table are without it: total, self, mean, percentiles and max, as in \
                         reports. Then ~ is before a time that may be off by up to half, and < \
                         before the most that it can be. d shows times as they were seen, and the \
                         others as net: – where they would be off by more than half.";
const FOLDED_IS: &str = "In the tree, (+12) behind a name means that 12 rows below it are folded. Its percentage is of \
                         the time on the clock: several threads together can have more than 100%.";

pub(super) fn lines(width: usize) -> Vec<Line<'static>> {
    let mut lines = paragraph("Keys", width);
    lines.extend(list(
        BINDINGS.iter().map(|binding| (binding.shown, binding.help.to_owned())),
        width,
    ));
    lines.push(Line::default());
    lines.extend(paragraph("Columns", width));
    let column = |column: &TopColumn| (column.heading(), column.help());
    lines.extend(list(TopColumn::FIRST.iter().map(column), width));
    lines.extend(list([("trend", TREND.to_owned())].into_iter(), width));
    lines.extend(list(TopColumn::all()[TopColumn::FIRST.len()..].iter().map(column), width));
    lines.push(Line::default());
    lines.extend(paragraph("Letters behind a name", width));
    let marks = Mark::all().map(|(letter, says)| (letter.to_string(), says.to_owned()));
    let marks: Vec<(String, String)> = marks.collect();
    lines.extend(list(marks.iter().map(|(letter, says)| (letter.as_str(), says.clone())), width));
    lines.push(Line::default());
    lines.extend(paragraph(ABSENT_IS, width));
    lines.extend(paragraph(FOLDED_IS, width));
    lines.extend(paragraph(
        "~ marks what is not exact: what probes cost, and percentiles of long stretches of time. \
         While numbers are compared, columns show changes: +9%, ×12, pp for points of a percentage, \
         = for none, new and gone.",
        width,
    ));
    lines
}

fn list<'a>(rows: impl Iterator<Item = (&'a str, String)>, width: usize) -> Vec<Line<'static>> {
    const ROOM: usize = 10;
    let row = |(what, help): (&'a str, String)| {
        let fill = " ".repeat(ROOM.saturating_sub(names::width(what)));
        format!("{what}{fill} {help}")
    };
    rows.map(row).flat_map(|text| paragraph(&text, width)).collect()
}
