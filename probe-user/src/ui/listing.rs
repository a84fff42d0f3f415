//! Writes the lines of `ctrace list` in plain columns, for grep and awk.

use super::Style;
use ctrace_core::{function::FunctionKind, report::render::clean::clean};
use std::io::{self, Write};

/// One function, USDT site or marker scope.
pub(crate) struct ListingLine {
    pub kind: FunctionKind,
    pub name: String,
    pub object: String,
    /// File and line, or empty.
    pub place: String,
    /// The method of tracing it.
    pub how: Option<String>,
    /// True if it is known that it cannot be traced.
    pub refused: bool,
}

/// The width beyond which a name no longer widens its column.
const WIDEST: usize = 48;

/// Writes aligned lines, and for people their number and `more` behind it. The lines are made twice: kept
/// together they would take more memory than their source.
pub(crate) fn write<Lines: Iterator<Item = ListingLine>>(
    out: &mut impl Write,
    lines: impl Fn() -> Lines,
    more: &str,
    style: &Style,
) -> io::Result<()> {
    let width = |text: &str| text.chars().take(WIDEST).count();
    let (mut name, mut object, mut place, mut count, mut refused) = (0, 0, 0, 0, 0);
    for line in lines() {
        name = name.max(width(&line.name));
        object = object.max(width(&line.object));
        place = place.max(width(&line.place));
        count += 1;
        refused += usize::from(line.refused);
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
        let refused = match refused {
            0 => String::new(),
            n => format!(", {n} of them not traced"),
        };
        writeln!(out, "{count} in all{refused}{more}")?;
    }
    Ok(())
}
