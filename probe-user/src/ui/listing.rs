//! The lines of `ctrace list`: plain columns, so that grep and awk can use them.

use super::Style;
use ctrace_core::{export::clean::clean, function::FunctionKind};

/// One function, USDT site or marker scope.
pub struct Line {
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

/// One line each, aligned, without a heading when not for a terminal.
pub fn render(lines: &[Line], style: &Style) -> String {
    let widest = |text: fn(&Line) -> usize| lines.iter().map(text).max().unwrap_or(0).min(WIDEST);
    let name = widest(|line| line.name.chars().count());
    let object = widest(|line| line.object.chars().count());
    let place = widest(|line| line.place.chars().count());
    let mut out = String::new();
    for line in lines {
        let kind = match line.kind {
            FunctionKind::Function => "function",
            FunctionKind::Usdt => "usdt",
            FunctionKind::Marker => "marker",
        };
        let how = line.how.as_deref().unwrap_or_default();
        let text = format!(
            "{kind:<8}  {:<name$}  {:<object$}  {:<place$}  {how}",
            clean(&line.name),
            clean(&line.object),
            clean(&line.place),
        );
        out += text.trim_end();
        out.push('\n');
    }
    if style.width.is_some() {
        out += &match lines.len() {
            1 => "1 in all\n".to_owned(),
            count => format!("{count} in all\n"),
        };
    }
    out
}
