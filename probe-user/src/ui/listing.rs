//! Writes the lines of `ctrace list` in plain columns, for grep and awk. Long names are cut to the width;
//! JSON has them whole.

use super::{
    Style,
    output::style::Tone,
    text::{
        self,
        distinct::shorten_all,
        names::{cut_middle, cut_start, width},
    },
};
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

/// The names that are told apart where they are cut: so many lines that follow each other. Those of a
/// large program would together take more memory than their source.
const TOLD_APART: usize = 1000;

const KIND: usize = "function".len();
const GAP: usize = 2;

/// The widths of the columns.
struct Columns {
    name: usize,
    object: usize,
    place: usize,
}

impl Columns {
    /// Fits columns of these widths into a line of this width. The name gets what the others leave, and
    /// they get at least a part, or what the name leaves.
    fn fit(self, width: usize) -> Self {
        let room = width.saturating_sub(KIND + 3 * GAP);
        let spare = room.saturating_sub(self.name);
        let of_place = self.place.min(room / 4);
        let object = self.object.min((room / 6).max(spare.saturating_sub(of_place)));
        let place = self.place.min((room / 4).max(spare.saturating_sub(object)));
        Self { name: self.name.min(room.saturating_sub(object + place)), object, place }
    }

    /// Cuts the names of some lines, so that different ones stay different.
    fn names(&self, lines: &[ListingLine]) -> Vec<String> {
        let names: Vec<_> = lines.iter().map(|line| clean(&line.name)).collect();
        shorten_all(&names, self.name)
    }

    fn line(&self, line: &ListingLine, name: &str) -> String {
        let kind = match line.kind {
            FunctionKind::Function => "function",
            FunctionKind::Usdt => "usdt",
            FunctionKind::Marker => "marker",
        };
        let object = cut_middle(&clean(&line.object), self.object);
        let place = cut_start(&clean(&line.place), self.place);
        let fill = |text: &str, room: usize| " ".repeat(room.saturating_sub(width(text)) + GAP);
        format!(
            "{kind:<KIND$}{:GAP$}{name}{}{object}{}{place}{}",
            "",
            fill(name, self.name),
            fill(&object, self.object),
            fill(&place, self.place),
        )
    }
}

/// Returns the end of a line, with the method of tracing. It goes below what it belongs to if both do not
/// fit into a line of a terminal, or of the width that the user tells.
fn with_method(line: String, how: &str, room: Option<usize>) -> String {
    const INDENT: usize = 4;
    match room {
        _ if how.is_empty() => line.trim_end().to_owned(),
        Some(room) if width(&line) + width(how) > room => {
            let style = Style { width: Some(room.saturating_sub(INDENT)), ..Style::default() };
            let below = text::paragraph(how, Tone::Plain, &style);
            let below = below.lines().map(|part| format!("\n{:INDENT$}{part}", ""));
            line.trim_end().to_owned() + &below.collect::<String>()
        }
        _ => line + how,
    }
}

/// Writes aligned lines, and for people their number and `more` behind it. A line fits the width, but
/// for what it says of the method, which grep finds there. With `room` that fits, too, in lines below. The lines are made twice: kept together they would take more memory than their source.
pub(crate) fn write<Lines: Iterator<Item = ListingLine>>(
    out: &mut impl Write,
    lines: impl Fn() -> Lines,
    more: &str,
    style: &Style,
    room: Option<usize>,
) -> io::Result<()> {
    let mut columns = Columns { name: 0, object: 0, place: 0 };
    let (mut count, mut refused) = (0, 0);
    for line in lines() {
        columns.name = columns.name.max(width(&clean(&line.name)));
        columns.object = columns.object.max(width(&clean(&line.object)));
        columns.place = columns.place.max(width(&clean(&line.place)));
        count += 1;
        refused += usize::from(line.refused);
    }
    if let Some(width) = style.width {
        columns = columns.fit(width);
    }
    let mut lines = lines();
    loop {
        let some: Vec<ListingLine> = lines.by_ref().take(TOLD_APART).collect();
        if some.is_empty() {
            break;
        }
        for (line, name) in some.iter().zip(columns.names(&some)) {
            let how = clean(line.how.as_deref().unwrap_or_default());
            let line = with_method(columns.line(line, &name), &how, room);
            writeln!(out, "{}", style.resolve(&line))?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, place: &str) -> ListingLine {
        ListingLine {
            kind: FunctionKind::Function,
            name: name.to_owned(),
            object: "server".to_owned(),
            place: place.to_owned(),
            how: None,
            refused: false,
        }
    }

    fn list(names: &[String], place: &str, style: Style) -> Vec<String> {
        let mut out = Vec::new();
        let lines = || names.iter().map(|name| line(name, place));
        write(&mut out, lines, "", &style, None).expect("memory takes it");
        let text = String::from_utf8(out).expect("text");
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert_eq!(lines.last(), Some(&format!("{} in all", names.len())));
        lines[..names.len()].to_vec()
    }

    #[test]
    fn lines_fit_and_different_names_stay_different() {
        let name =
            |what: &str| format!("shop::{}::{what}::{}", "cart".repeat(30), "run".repeat(30));
        let names = [name("add"), name("remove"), "main".to_owned()];
        let place = format!("{}/cart.rs:118", "folder/".repeat(9));
        for columns in [40, 80, 120] {
            for ascii in [false, true] {
                let style = Style { width: Some(columns), ascii, ..Style::default() };
                let lines = list(&names, &place, style);
                assert!(lines.iter().all(|line| width(line) <= columns), "{columns}: {lines:#?}");
                assert!(lines.iter().all(|line| line.ends_with(":118")), "{lines:#?}");
                assert!(!lines[0].contains('?') && lines[2].contains(" main "), "{lines:#?}");
                if columns > 40 {
                    assert!(lines[0].contains("add") && lines[1].contains("remove"), "{lines:#?}");
                }
            }
        }
    }

    #[test]
    fn the_method_goes_below_where_there_is_a_width() {
        let how = "entry +0 nop5, exit at 2 rets nop; arguments: int x, char const* name";
        let told = |room| with_method("function  main  server  ".to_owned(), how, room);
        assert_eq!(told(None), format!("function  main  server  {how}"));
        assert_eq!(told(Some(100)), told(None));
        assert_eq!(
            told(Some(60)),
            "function  main  server\n    entry +0 nop5, exit at 2 rets nop; arguments: int x,\n      \
             char const* name"
        );
    }

    #[test]
    fn what_fits_is_whole() {
        let names = ["shop::load(std::string, int)", "main"].map(str::to_owned);
        let style = Style { width: Some(80), ..Style::default() };
        let lines = list(&names, "cart.rs:118", style);
        assert_eq!(lines[0], "function  shop::load(std::string, int)  server  cart.rs:118");
        assert_eq!(lines[1], "function  main                          server  cart.rs:118");
        let place = format!("{}/cart.rs:118", "folder/".repeat(5));
        let lines = list(&names[1..], &place, style);
        assert_eq!(lines[0], format!("function  main  server  {place}"));
    }
}
