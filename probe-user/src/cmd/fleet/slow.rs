//! `ctrace fleet slow`: the slowest calls of all machines, with what was inside them.

use super::{
    Failure, say_damaged,
    scan::{self, Damaged},
    wanted,
};
use crate::{
    cli::{DiffFormat, FleetSlowArgs},
    session::keep::sink::{Default, Out},
    ui::{
        self,
        output::style::Tone,
        text::{
            self,
            units::{Digits, count, time},
        },
    },
};
use ctrace_core::{
    fleet::{
        Table,
        partition::{NANOS_A_DAY, day_name, day_of},
        slowest::{Slowest, SlowestCall},
    },
    report::{render::clean::clean, render::json},
    units::Nanos,
};
use serde::Serialize;
use std::path::Path;

/// The value of the key `schema`.
const SCHEMA: &str = "ctrace.fleet.slow.v1";

/// The JSON document. Keys are only added within a version.
#[derive(Serialize)]
struct SlowReport<'a> {
    schema: &'static str,
    folder: &'a Path,
    files: u64,
    rows: u64,
    damaged: Vec<Damaged<'a>>,
    calls: Vec<CallDocument<'a>>,
}

#[derive(Serialize)]
struct CallDocument<'a> {
    host: &'a str,
    unit: &'a str,
    target: &'a str,
    version: Option<&'a str>,
    function: &'a str,
    object: &'a str,
    process: u32,
    tid: u32,
    thread: &'a str,
    /// Nanoseconds since 1970.
    call_start_ns: i64,
    duration_ns: u64,
    self_ns: Option<u64>,
    path: Vec<&'a str>,
    inside: Vec<CalleeDocument<'a>>,
    lost_events: u64,
}

#[derive(Serialize)]
struct CalleeDocument<'a> {
    name: &'a str,
    calls: u64,
    total_ns: u64,
}

impl<'a> CallDocument<'a> {
    fn of(slow: &'a SlowestCall) -> Self {
        let inside = slow.inside.iter().map(|callee| CalleeDocument {
            name: &callee.function,
            calls: callee.calls,
            total_ns: callee.total_ns,
        });
        Self {
            host: &slow.host,
            unit: &slow.unit,
            target: &slow.target,
            version: slow.version.as_deref(),
            function: &slow.names.function,
            object: &slow.names.object,
            process: slow.call.process,
            tid: slow.call.tid,
            thread: &slow.call.thread,
            call_start_ns: slow.call.start_ns,
            duration_ns: slow.call.duration_ns,
            self_ns: slow.call.self_ns,
            path: slow.path.iter().map(|name| &**name).collect(),
            inside: inside.collect(),
            lost_events: slow.lost_events,
        }
    }
}

pub(super) fn main(args: &FleetSlowArgs) -> Result<u8, Failure> {
    scan::check(&args.what.folder)?;
    let mut out = Out::open(args.output.as_deref(), Default::Stdout)?;
    let wanted = wanted(&args.what, args.version.as_ref());
    let files = scan::find(&args.what.folder, Table::SlowCalls, &wanted)?;
    let (slowest, read) = scan::each(
        &files,
        || Slowest::new(args.top),
        |slowest, file, part, group| {
            part.slow_calls(group, &wanted, |row| slowest.add(&file.host, &file.unit, row))
        },
        Slowest::merge,
    );
    say_damaged(&read);
    let text = match args.format {
        DiffFormat::Json => json::to_pretty(&SlowReport {
            schema: SCHEMA,
            folder: &args.what.folder,
            files: read.files,
            rows: read.rows,
            damaged: read.damaged(),
            calls: slowest.calls().iter().map(CallDocument::of).collect(),
        }),
        DiffFormat::Table if slowest.calls().is_empty() => {
            "No slow call was chosen: daemons keep those that took `slow_from` at least.\n"
                .to_owned()
        }
        DiffFormat::Table => slowest.calls().iter().map(|call| shown(call, &out.style)).collect(),
    };
    out = out.paged();
    out.write(&text)?;
    Ok(0)
}

/// Draws a call: what and where it was, how it was reached, and its callees.
fn shown(slow: &SlowestCall, style: &ui::Style) -> String {
    let long = |ns: u64| time(Nanos(ns), Digits::Full);
    let SlowestCall { host, unit, names, call, path, inside, .. } = slow;
    let head = format!(
        "{} {} · {} · {} · {} · thread {} ({})",
        long(call.duration_ns),
        clean(&names.function),
        moment(call.start_ns),
        clean(host),
        clean(unit),
        call.tid,
        clean(&call.thread)
    );
    let mut out = text::paragraph(&head, Tone::Title, style);
    let path: Vec<_> = path.iter().map(|name| clean(name)).collect();
    out += &text::paragraph(&format!("on {}", path.join(" > ")), Tone::Plain, style);
    let own = call.self_ns.map_or("unknown".to_owned(), long);
    let mut parts = vec![format!("self {own}")];
    parts.extend(inside.iter().map(|callee| {
        let (name, calls) = (clean(&callee.function), count(callee.calls));
        format!("{name} {} in {calls}", long(callee.total_ns))
    }));
    out += &text::paragraph(&format!("inside: {}", parts.join(", ")), Tone::Plain, style);
    out + "\n"
}

/// Returns a time in UTC.
fn moment(ns: i64) -> String {
    let millis = ns.rem_euclid(NANOS_A_DAY) / 1_000_000;
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{} {hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z", day_name(day_of(ns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_in_utc() {
        assert_eq!(moment(1_795_858_031_042_999_999), "2026-11-28 09:27:11.042Z");
        assert_eq!(moment(-1), "1969-12-31 23:59:59.999Z");
    }
}
