//! Comma-separated values: one table per file, raw nanoseconds, quoted as in RFC 4180.
//!
//! A file of rows has no place for the loss line, so the caller prints that line elsewhere. Absent
//! values are empty. Lines end in a line feed, as Unix tools expect. A name that a spreadsheet
//! would take for a formula gets a leading apostrophe.

use super::RowKind;
use super::clean::clean;
use super::columns::{self, UnknownColumn};
use super::flat::{
    self, Bucket, InCtrack, InFrames, InTrend, OfPlot, OnPath, OneWaker, Slice, WithValue,
};
use super::rows::{self, ChosenRows, RowChoice};
use crate::function::FunctionKind;
use crate::report::numbers::{NUMBERS, Number};
use crate::report::{
    CallReport, FunctionReport, LockReport, PathReport, Report, ThreadReport, ctrack, trend,
};
use crate::units::Nanos;
use crate::values::Value;
use std::borrow::{Borrow, Cow};

/// A column: its heading, and a function that returns a row's text.
type Field<T> = (&'static str, fn(&T) -> String);
type PlotField = (&'static str, fn(&OfPlot<'_>) -> String);
type LockField = (&'static str, fn(&&LockReport) -> String);
type PathField<T> = (&'static str, fn(&OnPath<'_, T>) -> String);

/// Renders the rows that `selection` chooses from `table`, with a heading row.
pub fn render(
    report: &Report,
    table: RowKind,
    selection: &RowChoice,
) -> Result<String, UnknownColumn> {
    render_with(report, table, selection, &[])
}

/// Renders the same. Each row ends with the cells of `more`.
pub fn render_with(
    report: &Report,
    table: RowKind,
    selection: &RowChoice,
    more: &MoreCells,
) -> Result<String, UnknownColumn> {
    if let Some(sort) = &selection.sort {
        columns::check(sort, &[table])?;
    }
    let out = Table { more };
    Ok(match table {
        RowKind::Functions => {
            out.rows(&report.functions, &rows::functions(report, selection), &functions())
        }
        RowKind::Paths => {
            out.all(&flat::paths(report, &rows::paths(report, selection).indices), PATHS)
        }
        RowKind::Counts => {
            out.all(&flat::paths(report, &rows::counts(report, selection).indices), COUNTS)
        }
        RowKind::Threads => out.rows(&report.threads, &rows::threads(report, selection), THREADS),
        RowKind::Histograms => out.all(&flat::histograms(report, selection), HISTOGRAMS),
        RowKind::Calls => out.all(&flat::calls(report, selection), CALLS),
        RowKind::Timeline => out.all(&flat::timeline(report), TIMELINE),
        RowKind::Values => out.all(&flat::values(report, selection), VALUES),
        RowKind::Wakers => out.all(&flat::wakers(report, selection), WAKERS),
        RowKind::Plots => out.all(&flat::plots(report, selection), PLOTS),
        RowKind::Locks => out.all(&flat::locks(report, selection), LOCKS),
        RowKind::Frames => out.all(&flat::frames(report, selection), FRAMES),
        RowKind::Trend => out.all(&flat::trend(report, selection), &in_trend()),
        RowKind::Ctrack => out.all(&flat::ctrack(report, selection), &in_ctrack()),
    })
}

/// Cells that are the same in all rows, with their headings.
pub type MoreCells = [(&'static str, String)];

/// A table, and what its rows end with.
struct Table<'a> {
    more: &'a MoreCells,
}

impl Table<'_> {
    fn rows<T>(
        &self,
        list: &[T],
        rows: &ChosenRows,
        fields: &[(&str, impl Fn(&T) -> String)],
    ) -> String {
        self.write(rows.indices.iter().map(|&index| &list[index]), fields)
    }

    fn all<T>(&self, list: &[T], fields: &[(&str, impl Fn(&T) -> String)]) -> String {
        self.write(list.iter(), fields)
    }

    fn write<'a, T: 'a>(
        &self,
        rows: impl Iterator<Item = &'a T>,
        fields: &[(&str, impl Fn(&T) -> String)],
    ) -> String {
        let headings = fields.iter().map(|(heading, _)| *heading);
        let headings = headings.chain(self.more.iter().map(|(heading, _)| *heading));
        let mut out = headings.collect::<Vec<_>>().join(",");
        out.push('\n');
        for row in rows {
            let cells = fields.iter().map(|(_, text)| text(row));
            let cells = cells.chain(self.more.iter().map(|(_, text)| text.clone()));
            for (i, text) in cells.enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&quoted(&text));
            }
            out.push('\n');
        }
        out
    }
}

pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    let text = clean(text);
    if text.contains([',', '"', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ') {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        text
    }
}

/// The characters that begin a formula in a spreadsheet, in narrow and wide form.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// Protects a name that comes from the target from being read as a formula. Some spreadsheets also
/// begin a cell after each semicolon.
pub(crate) fn text(name: &str) -> Cow<'_, str> {
    if !name.contains(FORMULA) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 8);
    let mut begins = true;
    for c in name.chars() {
        if begins && FORMULA.contains(&c) {
            out.push('\'');
        }
        begins = c == ';' || begins && c.is_whitespace();
        out.push(c);
    }
    Cow::Owned(out)
}

fn ns(value: Nanos) -> String {
    value.0.to_string()
}

fn maybe<T: ToString>(value: Option<T>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

fn maybe_ns(value: Option<Nanos>) -> String {
    maybe(value.map(|v| v.0))
}

fn joined(names: &[impl Borrow<str>]) -> String {
    text(&names.join(";")).into_owned()
}

fn maybe_text(name: Option<&str>) -> String {
    name.map(|name| text(name).into_owned()).unwrap_or_default()
}

fn kind(kind: FunctionKind) -> String {
    match kind {
        FunctionKind::Function => "function",
        FunctionKind::Usdt => "usdt",
        FunctionKind::Marker => "marker",
    }
    .to_owned()
}

/// A heading, and a function that returns a row's text below it.
type NumberColumn<T> = (&'static str, Box<dyn Fn(&T) -> String>);

/// Returns the columns of a function: its names and its numbers.
fn functions() -> Vec<NumberColumn<FunctionReport>> {
    columns_of(|f| f, NUMBERS, |f| f)
}

/// Returns the columns of CTRACK's tables.
fn in_ctrack<'a>() -> Vec<NumberColumn<InCtrack<'a>>> {
    columns_of(|of: &InCtrack<'a>| of.function, ctrack::NUMBERS, |of| of.row)
}

/// Returns the columns of functions in intervals: what is missing in the interval is the last.
fn in_trend<'a>() -> Vec<NumberColumn<InTrend<'a>>> {
    let texts: [NumberColumn<InTrend<'a>>; 5] = [
        ("name", Box::new(|of| text(&of.row.name).into_owned())),
        ("object", Box::new(|of| text(&of.row.object).into_owned())),
        ("group", Box::new(|of| maybe_text(of.row.group.as_deref()))),
        ("from_ns", Box::new(|of| ns(of.interval.start_ns))),
        ("to_ns", Box::new(|of| ns(of.interval.end_ns))),
    ];
    let numbers = trend::NUMBERS.iter().map(|number| -> NumberColumn<InTrend<'a>> {
        (number.key, Box::new(|of| (number.of)(of.row).to_string()))
    });
    let lost: NumberColumn<InTrend<'a>> =
        ("lost", Box::new(|of| of.interval.loss.missing().to_string()));
    texts.into_iter().chain(numbers).chain([lost]).collect()
}

/// Returns the columns of names, and those of numbers.
fn columns_of<T, R: 'static>(
    function: impl Fn(&T) -> &FunctionReport + Copy + 'static,
    numbers: &'static [Number<R>],
    row: impl Fn(&T) -> &R + Copy + 'static,
) -> Vec<NumberColumn<T>> {
    let texts = NAMES.iter().map(|&(heading, text)| -> NumberColumn<T> {
        (heading, Box::new(move |of: &T| text(function(of))))
    });
    let numbers = numbers.iter().map(|number| -> NumberColumn<T> {
        (number.key, Box::new(move |of: &T| (number.of)(row(of)).to_string()))
    });
    texts.chain(numbers).collect()
}

/// The headings are the keys of the JSON report.
static NAMES: &[Field<FunctionReport>] = &[
    ("name", |f| text(&f.name).into_owned()),
    ("aliases", |f| joined(&f.aliases)),
    ("object", |f| text(&f.object).into_owned()),
    ("file", |f| maybe_text(f.file.as_deref())),
    ("line", |f| maybe(f.line)),
    ("kind", |f| kind(f.kind)),
    ("group", |f| maybe_text(f.group.as_deref())),
];

/// The path is folded as in flame graph tools: root to leaf, separated by semicolons, markers with
/// their groups.
static PATHS: &[PathField<PathReport>] = &[
    ("path", |p| joined(&p.names)),
    ("depth", |p| p.names.len().to_string()),
    ("calls", |p| p.of.calls.to_string()),
    ("total_ns", |p| ns(p.of.total_ns)),
    ("self_ns", |p| ns(p.of.self_ns)),
    ("p50_ns", |p| maybe_ns(p.of.p50_ns)),
    ("p90_ns", |p| maybe_ns(p.of.p90_ns)),
    ("p99_ns", |p| maybe_ns(p.of.p99_ns)),
    ("max_ns", |p| maybe_ns(p.of.max_ns)),
];

static COUNTS: &[PathField<PathReport>] = &[
    ("path", |p| joined(&p.names)),
    ("depth", |p| p.names.len().to_string()),
    ("calls", |p| p.of.calls.to_string()),
];

/// One row for each bucket.
static HISTOGRAMS: &[Field<Bucket>] = &[
    ("name", |b| text(&b.name).into_owned()),
    ("object", |b| text(&b.object).into_owned()),
    ("from_ns", |b| ns(b.from)),
    ("to_ns", |b| ns(b.to)),
    ("calls", |b| b.calls.to_string()),
    ("group", |b| maybe_text(b.group.as_deref())),
];

static CALLS: &[PathField<CallReport>] = &[
    ("path", |c| joined(&c.names)),
    ("pid", |c| maybe(c.of.pid.map(|pid| pid.0))),
    ("tid", |c| maybe(c.of.tid.map(|tid| tid.0))),
    ("thread", |c| maybe_text(c.of.thread.as_deref())),
    ("start_ns", |c| ns(c.of.start_ns)),
    ("duration_ns", |c| ns(c.of.duration_ns)),
    ("self_ns", |c| ns(c.of.self_ns)),
    ("inside_calls", |c| c.of.inside_calls.to_string()),
];

/// One row for each slice in which something ran at a depth. Depth 0 is the innermost function.
static TIMELINE: &[Field<Slice>] = &[
    ("pid", |s| s.pid.0.to_string()),
    ("tid", |s| s.tid.0.to_string()),
    ("thread", |s| text(&s.thread).into_owned()),
    ("depth", |s| s.depth.to_string()),
    ("from_ns", |s| ns(s.from)),
    ("to_ns", |s| ns(s.to)),
    ("name", |s| text(&s.name).into_owned()),
    ("function_ns", |s| ns(s.cell.function_ns)),
    ("busy_ns", |s| ns(s.cell.busy_ns)),
    ("group", |s| maybe_text(s.group.as_deref())),
];

static FRAMES: &[Field<InFrames>] = &[
    ("name", |f| text(&f.name).into_owned()),
    ("object", |f| text(&f.object).into_owned()),
    ("typical_calls", |f| f.part.typical_calls.to_string()),
    ("typical_self_ns", |f| ns(f.part.typical_self_ns)),
    ("worst_calls", |f| f.part.worst_calls.to_string()),
    ("worst_self_ns", |f| ns(f.part.worst_self_ns)),
    ("group", |f| maybe_text(f.group.as_deref())),
];

static VALUES: &[Field<WithValue>] = &[
    ("name", |v| text(&v.name).into_owned()),
    ("object", |v| text(&v.object).into_owned()),
    ("of", |v| text(&v.of).into_owned()),
    ("which", |v| v.which.to_owned()),
    ("value", |v| v.value.as_ref().map(value).unwrap_or_default()),
    ("calls", |v| v.calls.calls.to_string()),
    ("timed", |v| v.calls.timed.to_string()),
    ("total_ns", |v| ns(v.calls.total_ns)),
    ("mean_ns", |v| maybe(v.calls.mean_ns.map(|ns| ns.0))),
    ("p50_ns", |v| maybe(v.calls.p50_ns.map(|ns| ns.0))),
    ("p90_ns", |v| maybe(v.calls.p90_ns.map(|ns| ns.0))),
    ("p99_ns", |v| maybe(v.calls.p99_ns.map(|ns| ns.0))),
    ("max_ns", |v| maybe(v.calls.max_ns.map(|ns| ns.0))),
    ("group", |v| maybe_text(v.group.as_deref())),
];

static WAKERS: &[Field<OneWaker>] = &[
    ("name", |w| maybe_text(w.name.as_deref())),
    ("object", |w| maybe_text(w.object.as_deref())),
    ("wait", |w| maybe_text(w.wait.as_deref())),
    ("waker", |w| maybe_text(w.waker.as_deref())),
    ("waits", |w| w.of.waits.to_string()),
    ("timed", |w| w.of.timed.to_string()),
    ("total_ns", |w| ns(w.of.total_ns)),
    ("mean_ns", |w| maybe_ns(w.of.mean_ns)),
    ("max_ns", |w| maybe_ns(w.of.max_ns)),
    ("group", |w| maybe_text(w.group.as_deref())),
];

static PLOTS: &[PlotField] = &[
    ("name", |p| text(&p.function.name).into_owned()),
    ("object", |p| text(&p.function.object).into_owned()),
    ("unit", |p| maybe_text(p.plot.unit.as_deref())),
    ("count", |p| p.plot.count.to_string()),
    ("min", |p| real(p.plot.min)),
    ("mean", |p| real(p.plot.mean)),
    ("max", |p| real(p.plot.max)),
    ("last", |p| real(p.plot.last)),
    ("group", |p| maybe_text(p.function.group.as_deref())),
];

static LOCKS: &[LockField] = &[
    ("name", |l| text(&l.name).into_owned()),
    ("address", |l| l.address.clone()),
    ("pid", |l| maybe(l.pid.map(|pid| pid.0))),
    ("kind", |l| l.kind.name(l.recursive).to_owned()),
    ("acquisitions", |l| l.acquisitions.to_string()),
    ("shared", |l| l.shared.to_string()),
    ("nested", |l| l.nested.to_string()),
    ("refused", |l| l.refused.to_string()),
    ("timed_out", |l| l.timed_out.to_string()),
    ("failed", |l| l.failed.to_string()),
    ("unclear", |l| l.unclear.to_string()),
    ("contended", |l| l.contended.to_string()),
    ("wait_ns", |l| ns(l.wait_ns)),
    ("wait_mean_ns", |l| maybe_ns(l.wait_mean_ns)),
    ("wait_p99_ns", |l| maybe_ns(l.wait_p99_ns)),
    ("wait_max_ns", |l| maybe_ns(l.wait_max_ns)),
    ("open_waits", |l| l.open_waits.to_string()),
    ("open_wait_max_ns", |l| maybe_ns(l.open_wait_max_ns)),
    ("uncontended_ns", |l| ns(l.uncontended_ns)),
    ("uncontended_max_ns", |l| maybe_ns(l.uncontended_max_ns)),
    ("conditions", |l| l.conditions.to_string()),
    ("conditions_ns", |l| ns(l.conditions_ns)),
    ("holds", |l| l.holds.to_string()),
    ("hold_ns", |l| ns(l.hold_ns)),
    ("hold_mean_ns", |l| maybe_ns(l.hold_mean_ns)),
    ("hold_max_ns", |l| maybe_ns(l.hold_max_ns)),
    ("unknown_holds", |l| l.unknown_holds.to_string()),
    ("open_holds", |l| l.open_holds.to_string()),
    ("blocked_ns", |l| ns(l.blocked_ns)),
    ("partly_blamed", |l| l.partly_blamed.to_string()),
    ("waiter", |l| maybe_text(l.waiter().map(|caller| &*caller.name))),
    ("waiter_ns", |l| maybe_ns(l.waiter().map(|caller| caller.wait_ns))),
    ("holder", |l| maybe_text(l.holder().map(|caller| &*caller.name))),
    ("holder_ns", |l| maybe_ns(l.holder().map(|caller| caller.blocked_ns))),
];

fn real(number: Option<f64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// A number is no formula, even if it is negative.
fn value(value: &Value) -> String {
    match value {
        Value::Text(words) => text(&words.to_string()).into_owned(),
        other => other.to_string(),
    }
}

static THREADS: &[Field<ThreadReport>] = &[
    ("pid", |t| t.pid.0.to_string()),
    ("tid", |t| t.tid.0.to_string()),
    ("name", |t| text(&t.name).into_owned()),
    ("calls", |t| t.calls.to_string()),
    ("first_ns", |t| ns(t.first_ns)),
    ("last_ns", |t| ns(t.last_ns)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_a_formula() {
        for (name, cell) in [
            ("=HYPERLINK(\"http://evil\")", "'=HYPERLINK(\"http://evil\")"),
            ("+1", "'+1"),
            ("-[NSFoo bar]", "'-[NSFoo bar]"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("  =1", "  '=1"),
            ("＝1", "'＝1"),
            ("main;=1;a-b; @c", "main;'=1;a-b; '@c"),
            ("a=b", "a=b"),
            ("operator-", "operator-"),
            ("", ""),
        ] {
            assert_eq!(text(name), cell);
        }
        // These two never begin the text, because they drive terminals and are escaped.
        assert_eq!(quoted(&text("\t=1")), "\\u{9}'=1");
        assert_eq!(quoted(&text("\r=1")), "\\u{d}'=1");
        assert_eq!(quoted(&text("=a,b")), "\"'=a,b\"");
    }
}
