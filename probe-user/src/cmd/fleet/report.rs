//! `ctrace fleet report`: the table of functions that `report` prints, of many machines.

use super::{
    Failure, say_damaged,
    scan::{self, Damaged, Read},
    wanted,
};
use crate::{
    cli::{DiffFormat, FleetReportArgs},
    session::keep::sink::{Default, Out},
    ui::{
        self, ViewOptions,
        output::{style::Tone, wall},
        text::{self, units::counted},
    },
};
use ctrace_core::{
    fleet::{
        Table,
        sums::{By, PartSums, Sums},
    },
    report::{Report, render::clean::clean, render::json},
};
use serde::Serialize;
use std::{collections::BTreeMap, path::Path, sync::Arc};

/// The value of the key `schema`.
const SCHEMA: &str = "ctrace.fleet.v1";

/// The JSON document. Keys are only added within a version.
#[derive(Serialize)]
struct FleetReport<'a> {
    schema: &'static str,
    folder: &'a Path,
    files: u64,
    rows: u64,
    /// Files that could not be read, and why.
    damaged: Vec<Damaged<'a>>,
    /// Rows that found no room in memory.
    rows_left_out: u64,
    by: Option<&'static str>,
    parts: Vec<PartReport>,
}

#[derive(Serialize)]
struct PartReport {
    /// The host, the version or the unit.
    name: Option<Arc<str>>,
    hosts: u64,
    versions: Vec<Arc<str>>,
    intervals: u64,
    covered_ns: u64,
    calls: u64,
    cost_ns: u64,
    cpu_ns: u64,
    calls_without_path: u64,
    report: Report,
}

pub(super) fn main(args: &FleetReportArgs) -> Result<u8, Failure> {
    let options = ViewOptions {
        sort: args.sort.clone(),
        top: args.top,
        epoch_offset_ns: Some(wall::zone_ns()),
        ..ViewOptions::default()
    };
    options.check(false)?;
    scan::check(&args.what.folder)?;
    let mut out = Out::open(args.output.as_deref(), Default::Stdout)?;
    let (parts, left_out, read) = sums(args)?;
    say_damaged(&read);
    let by = args.by.map(By::from);
    let parts = parts.into_iter().map(|(name, part)| reported(by.map(|_| name), part));
    let text = match args.format {
        DiffFormat::Json => json::to_pretty(&FleetReport {
            schema: SCHEMA,
            folder: &args.what.folder,
            files: read.files,
            rows: read.rows,
            damaged: read.damaged(),
            rows_left_out: left_out,
            by: by.map(key),
            parts: parts.collect(),
        }),
        DiffFormat::Table => {
            let mut text = String::new();
            for part in parts {
                text += &heading(by, &part, &out.style);
                text += &ui::render_table(&part.report, &options, &out.style)?;
                text += "\n";
            }
            if text.is_empty() {
                text += "No interval was chosen.\n";
            }
            if left_out > 0 {
                text +=
                    &format!("{left_out} rows found no room: choose a part (--host, --unit, -f)\n");
            }
            text
        }
    };
    out = out.paged();
    out.write(&text)?;
    Ok(0)
}

fn sums(args: &FleetReportArgs) -> anyhow::Result<(BTreeMap<Arc<str>, PartSums>, u64, Read)> {
    let wanted = wanted(&args.what, args.version.as_ref());
    let new = || Sums::new(args.by.map(By::from));
    let mut read = Read::default();
    let files = scan::find(&args.what.folder, Table::Targets, &wanted)?;
    let (targets, of_targets) = scan::each(
        &files,
        new,
        |sums, file, part, group| {
            part.targets(group, &wanted, |row| sums.add_target(&file.host, &file.unit, row))
        },
        Sums::merge,
    );
    read.add(of_targets);
    let files = scan::find(&args.what.folder, Table::Functions, &wanted)?;
    let (functions, of_functions) = scan::each(
        &files,
        new,
        |sums, file, part, group| {
            part.functions(group, &wanted, |row| sums.add_function(&file.host, &file.unit, row))
        },
        Sums::merge,
    );
    read.add(of_functions);
    let all = targets.merge(functions);
    let left_out = all.left_out;
    Ok((all.into_parts(), left_out, read))
}

fn reported(name: Option<Arc<str>>, part: PartSums) -> PartReport {
    PartReport {
        name,
        hosts: part.hosts.len() as u64,
        versions: part.versions.iter().cloned().collect(),
        intervals: part.intervals,
        covered_ns: part.covered_ns,
        calls: part.calls,
        cost_ns: part.cost_ns,
        cpu_ns: part.cpu_ns,
        calls_without_path: part.losses.calls_without_path,
        report: part.report(Vec::new()),
    }
}

const fn key(by: By) -> &'static str {
    match by {
        By::Host => "host",
        By::Version => "version",
        By::Unit => "unit",
    }
}

/// Returns the line above the table of a part.
fn heading(by: Option<By>, part: &PartReport, style: &ui::Style) -> String {
    let mut parts = Vec::new();
    if let (Some(by), Some(name)) = (by, &part.name) {
        parts.push(format!("{} {}", key(by), clean(name)));
    }
    if by != Some(By::Host) {
        parts.push(counted(part.hosts, "host", "hosts"));
    }
    match &*part.versions {
        [] => {}
        [one] if by != Some(By::Version) => parts.push(format!("version {}", clean(one))),
        all if by != Some(By::Version) => {
            parts.push(counted(all.len() as u64, "version", "versions"));
        }
        _ => {}
    }
    parts.push(counted(part.intervals, "interval", "intervals"));
    text::paragraph(&parts.join(" · "), Tone::Title, style) + "\n"
}
