//! The columns by which rows can be sorted: one list per table. `--sort`, its errors and its help
//! derive from these lists.

use super::RowKind;
use crate::report::key::Key;
use crate::report::numbers::{NUMBERS, Number, plain};
use crate::report::{
    CallReport, CtrackRow, FramePart, FunctionReport, LockReport, OneValue, PathReport, PlotReport,
    ThreadReport, WakerReport, ctrack,
};
use crate::units::Nanos;
use std::sync::LazyLock;

/// A column of a table of `T`.
pub struct Column<T: 'static> {
    pub name: &'static str,
    /// Other spellings of the name, as in other tools.
    pub aliases: &'static [&'static str],
    /// How tables call it, which is understood, too.
    heading: &'static str,
    pub key: for<'a> fn(&'a T) -> Key<'a>,
}

const fn column<T>(
    name: &'static str,
    aliases: &'static [&'static str],
    key: for<'a> fn(&'a T) -> Key<'a>,
) -> Column<T> {
    Column { name, aliases, heading: name, key }
}

fn time<'a>(ns: Nanos) -> Key<'a> {
    Key::Count(Some(ns.0))
}

fn maybe<'a>(ns: Option<Nanos>) -> Key<'a> {
    Key::Count(ns.map(|ns| ns.0))
}

fn count<'a>(n: u64) -> Key<'a> {
    Key::Count(Some(n))
}

/// Columns of functions; the first is the default.
static FUNCTIONS: LazyLock<Vec<Column<FunctionReport>>> = LazyLock::new(|| {
    let texts = [
        column("name", &["function"], |f: &FunctionReport| Key::Text(&f.name)),
        column("object", &[], |f| Key::Text(&f.object)),
        column("file", &[], |f| Key::Text(f.file.as_deref().unwrap_or(&f.object))),
    ];
    in_order(ORDER, NUMBERS.iter().map(of_number).chain(texts))
});

/// Columns of the functions in CTRACK's tables; the first is the default.
static CTRACK: LazyLock<Vec<Column<CtrackRow>>> =
    LazyLock::new(|| in_order(CTRACK_ORDER, ctrack::NUMBERS.iter().map(of_number)));

fn of_number<T: 'static>(number: &'static Number<T>) -> Column<T> {
    let Number { name, aliases, heading, of: key, .. } = *number;
    Column { name, aliases, heading, key }
}

fn in_order<T: 'static>(order: &str, columns: impl Iterator<Item = Column<T>>) -> Vec<Column<T>> {
    let place = |name| order.split(' ').position(|listed| listed == name).unwrap_or(usize::MAX);
    let mut columns: Vec<_> = columns.collect();
    columns.sort_by_key(|column| place(column.name));
    columns
}

/// The order in which people see the columns of functions: the most useful for sorting first.
/// Others follow.
const ORDER: &str = "innermost a total self running runnable blocked calls threads min mean p50 p75 p90 p95 p99 \
                     p999 max sd cv innermost_center a_center timed untimed open headless calls_per_second \
                     armed name object file";

/// The same of CTRACK's tables, which CTRACK sorts by its *ae*.
const CTRACK_ORDER: &str = "ae a total calls threads sd cv ae_center a_center";

/// Returns the columns of functions, see [`FUNCTIONS`].
pub fn functions() -> &'static [Column<FunctionReport>] {
    &FUNCTIONS
}

/// Returns the columns of the functions in CTRACK's tables, see [`CTRACK`].
pub fn ctrack() -> &'static [Column<CtrackRow>] {
    &CTRACK
}

/// Columns of call paths; the first is the default.
pub static PATHS: &[Column<PathReport>] = &[
    column("total", &["acc", "time_acc"], |p| time(p.total_ns)),
    column("self", &[], |p| time(p.self_ns)),
    column("calls", &[], |p| count(p.calls)),
    column("p50", &["median", "med"], |p| maybe(p.p50_ns)),
    column("p90", &[], |p| maybe(p.p90_ns)),
    column("p99", &[], |p| maybe(p.p99_ns)),
    column("max", &[], |p| maybe(p.max_ns)),
    column("depth", &[], |p| count(p.path.len() as u64)),
    column("name", &["function"], |p| Key::Text(p.path.last().map_or("", |name| name))),
];

/// Columns of single calls; the first is the default.
pub static CALLS: &[Column<CallReport>] = &[
    column("duration", &["total", "time"], |c| time(c.duration_ns)),
    column("self", &[], |c| time(c.self_ns)),
    column("start", &["first"], |c| time(c.start_ns)),
    column("inside", &["calls"], |c| count(c.inside_calls)),
    column("depth", &[], |c| count(c.path.len() as u64)),
    column("tid", &["thread"], |c| Key::Count(c.tid.map(|tid| tid.0.into()))),
    column("name", &["function"], |c| Key::Text(c.name())),
];

/// Columns of functions within frames; the first is the default.
pub static FRAMES: &[Column<FramePart>] = &[
    column("more", &[], |p| Key::Real(Some(p.more_ns() as f64))),
    column("worst", &["self"], |p| time(p.worst_self_ns)),
    column("typical", &[], |p| time(p.typical_self_ns)),
    column("calls", &[], |p| count(p.worst_calls)),
];

/// Columns of values; the first is the default.
pub static VALUES: &[Column<OneValue>] = &[
    column("total", &[], |v| time(v.of.total_ns)),
    column("calls", &[], |v| count(v.of.calls)),
    column("mean", &[], |v| maybe(v.of.mean_ns)),
    column("p50", &["median", "med"], |v| maybe(v.of.p50_ns)),
    column("p90", &[], |v| maybe(v.of.p90_ns)),
    column("p99", &[], |v| maybe(v.of.p99_ns)),
    column("max", &[], |v| maybe(v.of.max_ns)),
];

/// Columns of wakers; the first is the default.
pub static WAKERS: &[Column<WakerReport>] = &[
    column("total", &[], |w| time(w.of.total_ns)),
    column("waits", &["calls"], |w| count(w.of.waits)),
    column("mean", &[], |w| maybe(w.of.mean_ns)),
    column("max", &[], |w| maybe(w.of.max_ns)),
];

/// Columns of plots; the first is the default.
pub static PLOTS: &[Column<PlotReport>] = &[
    column("count", &["calls"], |p| count(p.count)),
    column("min", &[], |p| Key::Real(p.min)),
    column("mean", &[], |p| Key::Real(p.mean)),
    column("max", &[], |p| Key::Real(p.max)),
    column("last", &[], |p| Key::Real(p.last)),
    column("name", &["plot"], |p| Key::Text(&p.name)),
];

/// Columns of locks; the first is the default.
pub static LOCKS: &[Column<LockReport>] = &[
    column("wait", &["total"], |l| time(l.wait_ns)),
    column("contended", &["waits"], |l| count(l.contended)),
    column("acquired", &["calls"], |l| count(l.acquisitions)),
    column("mean", &[], |l| maybe(l.wait_mean_ns)),
    column("p99", &[], |l| maybe(l.wait_p99_ns)),
    column("max", &[], |l| maybe(l.wait_max_ns)),
    column("held", &[], |l| time(l.hold_ns)),
    column("held_mean", &[], |l| maybe(l.hold_mean_ns)),
    column("held_max", &[], |l| maybe(l.hold_max_ns)),
    column("unknown", &[], |l| count(l.unknown_holds)),
    column("name", &["lock"], |l| Key::Text(&l.name)),
];

/// Columns of threads; the first is the default.
pub static THREADS: &[Column<ThreadReport>] = &[
    column("calls", &[], |t| count(t.calls)),
    column("first", &[], |t| time(t.first_ns)),
    column("last", &[], |t| time(t.last_ns)),
    column("pid", &[], |t| count(t.pid.0.into())),
    column("tid", &[], |t| count(t.tid.0.into())),
    column("name", &["thread"], |t| Key::Text(&t.name)),
];

/// Returns the column called `name`.
pub fn find<T>(columns: &'static [Column<T>], name: &str) -> Option<&'static Column<T>> {
    let name = plain(name);
    let is_named = |c: &&Column<T>| {
        c.name == name || c.aliases.contains(&name.as_str()) || plain(c.heading) == name
    };
    columns.iter().find(is_named)
}

/// A column that none of the tables has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownColumn {
    #[error("cannot sort by '{}': choose one of {valid}", super::clean::clean(given))]
    Other {
        given: String,
        /// The names of the existing columns, separated by commas.
        valid: String,
    },
    #[error("cannot sort by '{}': the timeline is in order of time", super::clean::clean(given))]
    None { given: String },
}

impl RowKind {
    fn columns(self) -> Vec<&'static str> {
        fn names<T>(columns: &'static [Column<T>]) -> Vec<&'static str> {
            columns.iter().map(|column| column.name).collect()
        }
        match self {
            Self::Functions | Self::Histograms | Self::Trend => names(functions()),
            Self::Paths | Self::Counts => names(PATHS),
            Self::Threads => names(THREADS),
            Self::Calls => names(CALLS),
            Self::Timeline => Vec::new(),
            Self::Frames => names(FRAMES),
            Self::Values => names(VALUES),
            Self::Wakers => names(WAKERS),
            Self::Plots => names(PLOTS),
            Self::Locks => names(LOCKS),
            Self::Ctrack => names(ctrack()),
        }
    }

    fn has_column(self, name: &str) -> bool {
        match self {
            Self::Functions | Self::Histograms | Self::Trend => find(functions(), name).is_some(),
            Self::Paths | Self::Counts => find(PATHS, name).is_some(),
            Self::Threads => find(THREADS, name).is_some(),
            Self::Calls => find(CALLS, name).is_some(),
            Self::Timeline => false,
            Self::Frames => find(FRAMES, name).is_some(),
            Self::Values => find(VALUES, name).is_some(),
            Self::Wakers => find(WAKERS, name).is_some(),
            Self::Plots => find(PLOTS, name).is_some(),
            Self::Locks => find(LOCKS, name).is_some(),
            Self::Ctrack => find(ctrack(), name).is_some(),
        }
    }
}

/// Returns the names of the columns by which any of `tables` can be sorted, each once.
pub fn names(tables: &[RowKind]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for name in tables.iter().flat_map(|table| table.columns()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Checks that at least one of `tables` has the column `name`.
pub fn check(name: &str, tables: &[RowKind]) -> Result<(), UnknownColumn> {
    let names = names(tables);
    if tables.iter().any(|table| table.has_column(name)) {
        return Ok(());
    }
    let given = name.to_owned();
    Err(match names.is_empty() {
        true => UnknownColumn::None { given },
        false => UnknownColumn::Other { given, valid: names.join(", ") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_order_is_one_of_a_column() {
        fn check<T>(columns: &[Column<T>], order: &str) {
            let columns: Vec<_> = columns.iter().map(|column| column.name).collect();
            let order: Vec<_> = order.split(' ').collect();
            assert_eq!(columns[..order.len()], order);
        }
        check(functions(), ORDER);
        check(ctrack(), CTRACK_ORDER);
    }
}
