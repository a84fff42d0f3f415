//! The help screen: the keys from their table, and the columns.

use super::paragraph;
use crate::{
    top::{keys::BINDINGS, model::columns::TopColumn},
    ui::text::names,
};
use ratatui::text::Line;

const TREND: &str = "how the column sorted by went in the last intervals, each against its largest";

const ABSENT_IS: &str = "– means that a number is not known: no call with a known duration ended in this time. net \
                         numbers need a measured cost of probes (ctrace doctor --calibrate). They \
                         may be off by up to half, and are – where they would be off by more: so \
                         net p50 can be – beside a net p99. The table that top leaves behind has ~ \
                         before a time that may be off by up to half, and < before the most that \
                         it can be.";
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

fn list(rows: impl Iterator<Item = (&'static str, String)>, width: usize) -> Vec<Line<'static>> {
    const ROOM: usize = 10;
    let row = |(what, help): (&str, String)| {
        let fill = " ".repeat(ROOM.saturating_sub(names::width(what)));
        format!("{what}{fill} {help}")
    };
    rows.map(row).flat_map(|text| paragraph(&text, width)).collect()
}
