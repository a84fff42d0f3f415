//! The locks of a program: how long threads waited for each, how long it was held, and who did.

use super::Context;
use crate::ui::output::style::Tone;
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::text;
use crate::ui::text::distinct::{shorten_all, shorten_each};
use crate::ui::text::names;
use crate::ui::text::units::{Digits, count, counted, maybe_time, time};
use ctrace_core::report::render::{clean::clean, rows};
use ctrace_core::report::{LockCallerReport, LockReport, LocksReport};
use ctrace_core::units::Nanos;

/// Locks shown without `--top`.
const TOP: usize = 20;
/// Columns to leave out where there is no room, the least useful first.
const DROPPED: [&str; 5] = ["held mean", "mean", "unknown", "held max", "p99"];
/// Told below who waits and for whom: the second time is not a part of the first.
const KEPT: &str = "waited: all waits of the caller in \"waits longest\", from entry to return. kept waiting: the \
                    part of all callers' waits in which the caller in \"holds it meanwhile\" held the lock; two \
                    calls that wait at once count twice. In the rest, others held it, or nobody did while \
                    threads woke up and probes ran.";
/// Told where there is no lock.
const NONE: &str = "No lock was used, as far as it was seen: --locks traces the locks of libc.\n";
/// The width that a lock's name should have, and the least.
const NAME_ROOM: usize = 20;
const LEAST_ROOM: usize = 12;

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report.locks.as_ref();
    let Some(report) = report else { return text::title("Locks") + NONE };
    if report.locks.is_empty() {
        return text::title("Locks") + NONE + &remarks(context, report);
    }
    let mut selection = context.selection.clone();
    selection.top.get_or_insert(TOP);
    let chosen = rows::locks(context.report, &selection);
    let shown: Vec<&LockReport> = chosen.indices.iter().map(|&at| &report.locks[at]).collect();
    let several = shown.iter().any(|lock| lock.pid != shown[0].pid);
    text::title("Locks")
        + &sums(context, &shown, several)
        + &context.left_out(chosen.left_out, "lock", "locks")
        + &callers(context, &shown)
        + &remarks(context, report)
}

fn width(context: &Context<'_>) -> usize {
    context.style.width.unwrap_or(usize::MAX)
}

fn sums(context: &Context<'_>, shown: &[&LockReport], several: bool) -> String {
    let room =
        |numbers: &ColumnGroup| width(context).saturating_sub(grid::total_width(&[numbers]) + 2);
    let mut left_out = 0;
    let mut group = numbers(shown, &DROPPED[..left_out]);
    while room(&group) < NAME_ROOM && left_out < DROPPED.len() {
        left_out += 1;
        group = numbers(shown, &DROPPED[..left_out]);
    }
    let room = room(&group).max(LEAST_ROOM);
    let behind = |lock: &LockReport| {
        let process = lock.pid.filter(|_| several);
        let process = process.map_or_else(String::new, |pid| format!(" ({})", pid.0));
        let kind = match lock.kind.name(lock.recursive) {
            "mutex" => String::new(),
            other => format!(" [{other}]"),
        };
        format!("{process}{kind}")
    };
    let behind: Vec<String> = shown.iter().map(|lock| behind(lock)).collect();
    let room_of = |at: usize| room.saturating_sub(names::width(&behind[at])).max(8);
    let names: Vec<_> = shown.iter().map(|lock| clean(&lock.name)).collect();
    let labels = shorten_each(&names, room_of).into_iter().zip(&behind).map(|(name, behind)| {
        let tone = Tone::of_function(&name);
        Cell::toned(names::cut_end(&(name + behind), room), tone)
    });
    let names = ColumnGroup::untitled(vec![GridColumn::left("lock", labels)]);
    grid::draw(&[&group, &names])
}

fn numbers(shown: &[&LockReport], without: &[&str]) -> ColumnGroup {
    let digits = Digits::Short;
    let times = |heading: &str, of: fn(&LockReport) -> Option<Nanos>| {
        GridColumn::right(heading, shown.iter().map(|lock| maybe_time(of(lock), digits)))
    };
    let counts = |heading: &str, of: fn(&LockReport) -> u64| {
        GridColumn::right(heading, shown.iter().map(|lock| count(of(lock))))
    };
    let mut columns = vec![
        counts("acquired", |lock| lock.acquisitions),
        counts("contended", |lock| lock.contended),
        times("wait", |lock| (lock.contended > 0).then_some(lock.wait_ns)),
        times("mean", |lock| lock.wait_mean_ns),
        times("p99", |lock| lock.wait_p99_ns),
        times("max", |lock| lock.wait_max_ns),
        times("held", |lock| (lock.holds > 0).then_some(lock.hold_ns)),
        times("held mean", |lock| lock.hold_mean_ns),
        times("held max", |lock| lock.hold_max_ns),
    ];
    if shown.iter().any(|lock| lock.unknown_holds > 0) {
        columns.push(counts("unknown", |lock| lock.unknown_holds));
    }
    columns.retain(|column| !without.contains(&column.heading.as_str()));
    ColumnGroup::untitled(columns)
}

/// Draws who waits and who holds, for the locks that were waited for.
fn callers(context: &Context<'_>, shown: &[&LockReport]) -> String {
    let is_waited_for = |lock: &&&LockReport| lock.contended > 0 || lock.open_waits > 0;
    let shown: Vec<&&LockReport> = shown.iter().filter(is_waited_for).collect();
    if shown.is_empty() {
        return String::new();
    }
    // Two times and the gaps.
    const TAKEN: usize = 2 * 12 + 4 * 2;
    let room = (width(context).saturating_sub(TAKEN) / 3).max(LEAST_ROOM);
    let name = |caller: Option<&LockCallerReport>| match caller {
        None => Cell::toned("–".to_owned(), Tone::Dim),
        Some(caller) => {
            let name = names::shorten(&clean(&caller.name), room);
            let tone = Tone::of_function(&name);
            Cell::toned(name, tone)
        }
    };
    let digits = Digits::Short;
    let waited = |lock: &&&LockReport| maybe_time(lock.waiter().map(|it| it.wait_ns), digits);
    let kept = |lock: &&&LockReport| maybe_time(lock.holder().map(|it| it.blocked_ns), digits);
    let locks: Vec<_> = shown.iter().map(|lock| clean(&lock.name)).collect();
    let locks = shorten_all(&locks, room);
    let group = ColumnGroup::untitled(vec![
        GridColumn::left("lock", locks),
        GridColumn::left("waits longest", shown.iter().map(|lock| name(lock.waiter()))),
        GridColumn::right("waited", shown.iter().map(waited)),
        GridColumn::left("holds it meanwhile", shown.iter().map(|lock| name(lock.holder()))),
        GridColumn::right("kept waiting", shown.iter().map(kept)),
    ]);
    "\n".to_owned()
        + &text::title("Who waits, and for whom")
        + &grid::draw(&[&group])
        + &text::paragraph(KEPT, Tone::Dim, context.style)
}

/// Returns what is to be known about these numbers.
fn remarks(context: &Context<'_>, report: &LocksReport) -> String {
    let mut out = String::new();
    let mut tell = |line: &str| out += &text::paragraph(line, Tone::Dim, context.style);
    let sum = |of: fn(&LockReport) -> u64| report.locks.iter().map(of).fold(0, u64::saturating_add);
    let uncontended = sum(|lock| lock.uncontended_ns.0);
    let longest = report.locks.iter().filter_map(|lock| lock.uncontended_max_ns).max();
    if let Some(longest) = longest {
        tell(&format!(
            "Calls in which no other thread was seen to hold the lock count as no waits. They took {}, \
             mostly for the probes; the longest took {}.",
            time(Nanos(uncontended), Digits::Short),
            time(longest, Digits::Short)
        ));
    }
    let open = sum(|lock| lock.open_waits).saturating_add(report.unknown_open_waits);
    if open > 0 {
        let longest = report.locks.iter().filter_map(|lock| lock.open_wait_max_ns).max();
        let longest = longest.map(|longest| {
            format!(" The longest had waited for {}.", time(longest, Digits::Short))
        });
        tell(&format!(
            "{} had not got {} lock in the end: {} among the waits of callers only.{}",
            counted(open, "call", "calls"),
            if open == 1 { "its" } else { "their" },
            if open == 1 { "it is" } else { "they are" },
            longest.unwrap_or_default()
        ));
    }
    let unclear = sum(|lock| lock.unclear);
    if unclear > 0 {
        tell(&format!(
            "It is not known whether {} got the lock: waits of others meanwhile may be missing.",
            counted(unclear, "call", "calls")
        ));
    }
    let failed = sum(|lock| lock.failed);
    if failed > 0 {
        tell(&format!(
            "{} failed, as a lock or an unlock by the wrong thread does.",
            counted(failed, "call", "calls")
        ));
    }
    let unknown = sum(|lock| lock.unknown_holds);
    if unknown > 0 {
        tell(&format!(
            "The beginning or the end of {} was not seen for sure: their times are in no number.",
            counted(unknown, "hold", "holds")
        ));
    }
    let partly = sum(|lock| lock.partly_blamed);
    if partly > 0 {
        tell(&format!(
            "In {}, more holds ended than a lock remembers: those before are in no `kept waiting`, and a \
             call that waited for these alone is not contended.",
            counted(partly, "call", "calls")
        ));
    }
    if report.lossy_stretches > 0 {
        tell(&format!(
            "Calls are missing in {} of the trace: waits there may be too few, and holds that reach \
             into them are unknown.",
            counted(report.lossy_stretches, "stretch", "stretches")
        ));
    }
    if report.other_events > 0 {
        tell(&format!(
            "There are too many locks to tell all apart: {} of others are not shown.",
            counted(report.other_events, "event", "events")
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_that_may_be_left_out_is_there() {
        let all = numbers(&[], &[]);
        let is_there = |name: &&&str| all.columns.iter().any(|column| column.heading == **name);
        // The column of unknown holds is there only where some are.
        assert_eq!(DROPPED.iter().filter(is_there).count(), DROPPED.len() - 1);
    }
}
