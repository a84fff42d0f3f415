//! The lines of `ctrace list`: plain columns, so that grep and awk can use them.

use super::Style;
use ctrace_core::{function::FunctionKind, report::render::clean::clean};
use std::io::{self, Write};

/// One function, USDT site or marker scope.
pub(crate) struct Line {
    pub kind: FunctionKind,
    pub name: String,
    pub object: String,
    /// File and line, or empty.
    pub place: String,
    /// How it would be traced.
    pub how: Option<String>,
}

/// Names wider than this do not push the other columns away.
const WIDEST: usize = 48;

/// One line each, aligned, without a heading when not for a terminal. The lines are made twice:
/// together they would take more memory than what they tell of.
pub(crate) fn write<Lines: Iterator<Item = Line>>(
    out: &mut impl Write,
    lines: impl Fn() -> Lines,
    style: &Style,
) -> io::Result<()> {
    let width = |text: &str| text.chars().take(WIDEST).count();
    let (mut name, mut object, mut place, mut count) = (0, 0, 0, 0);
    for line in lines() {
        name = name.max(width(&line.name));
        object = object.max(width(&line.object));
        place = place.max(width(&line.place));
        count += 1;
    }
    for line in lines() {
        let kind = match line.kind {
            FunctionKind::Function => "function",
            FunctionKind::Usdt => "usdt",
            FunctionKind::Marker => "marker",
        };
        let how = clean(line.how.as_deref().unwrap_or_default());
        let text = format!(
            "{kind:<8}  {:<name$}  {:<object$}  {:<place$}  {how}",
            clean(&line.name),
            clean(&line.object),
            clean(&line.place),
        );
        writeln!(out, "{}", text.trim_end())?;
    }
    if style.width.is_some() {
        writeln!(out, "{count} in all")?;
    }
    Ok(())
}
