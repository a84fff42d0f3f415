//! `ctrace fleet diff`: build against build, or before against after.

use super::{
    Failure, say_damaged,
    scan::{self, Read},
    wanted,
};
use crate::{
    cli::{DiffFormat, FleetDiffArgs},
    cmd::diff::WORSE,
    session::keep::sink::{Default, Out},
    ui::{self, DiffOptions, DiffView, text::units::counted},
};
use anyhow::bail;
use ctrace_core::{
    diff::{RowSelection, check_column},
    fleet::{
        Table, Wanted,
        compare::{self, Side, Survey},
        partition::{NANOS_A_DAY, day_name, day_of},
    },
    report::render::{clean::clean, json},
};
use std::path::Path;

pub(super) fn main(args: &FleetDiffArgs) -> Result<u8, Failure> {
    let selection = RowSelection { sort: args.sort.clone(), top: args.top, min_percent: None };
    selection.sort.as_deref().map_or(Ok(()), check_column)?;
    let folder = &args.what.folder;
    scan::check(folder)?;
    let mut out = Out::open(args.output.as_deref(), Default::Stdout)?;
    let mut read = Read::default();
    let [old, new] = sides(args).map(|(name, wanted)| side(folder, &name, &wanted, &mut read));
    let (old, new) = (old?, new?);
    say_damaged(&read);
    if args.judge.fail_over.is_some() && !read.damaged.is_empty() {
        return Err(anyhow::anyhow!(
            "{} cannot be read; without --fail-over what is left is compared",
            counted(read.damaged.len() as u64, "file", "files")
        )
        .into());
    }
    let options = args.judge.options(args.sort.as_deref());
    let mut found = compare::diff(old, new, &options);
    if let [old, new] = &*args.version
        && old == new
    {
        found.notes.push(SAME_VERSION.to_owned());
    }
    let text = match args.format {
        DiffFormat::Json => json::to_pretty(&found),
        DiffFormat::Table => {
            let options = DiffOptions { views: vec![DiffView::Functions], selection };
            ui::render_diff(&found, &options, &out.style)
        }
    };
    out = out.paged();
    out.write(&text)?;
    Ok(if found.failed { WORSE } else { 0 })
}

/// Said where a version is compared with itself.
const SAME_VERSION: &str = "Both sides are the same intervals of one version: nothing can differ, and no verdict means anything.";

/// Returns the name of each side, and what is wanted of it.
fn sides(args: &FleetDiffArgs) -> [(String, Wanted); 2] {
    let all = wanted(&args.what, None);
    if let [old, new] = &*args.version {
        return [old, new].map(|version| {
            let wanted = Wanted { version: Some(version.clone()), ..all.clone() };
            (format!("version {}", clean(version)), wanted)
        });
    }
    let edge = args.before.unwrap_or_default();
    let earlier = |time: Option<i64>| Some(time.map_or(edge, |time| time.min(edge)));
    let later = |time: Option<i64>| Some(time.map_or(edge, |time| time.max(edge)));
    let seconds = edge.rem_euclid(NANOS_A_DAY) / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let shown = format!("{}T{hours:02}:{minutes:02}:{seconds:02}", day_name(day_of(edge)));
    [
        (format!("before {shown}"), Wanted { until_ns: earlier(all.until_ns), ..all.clone() }),
        (format!("since {shown}"), Wanted { since_ns: later(all.since_ns), ..all }),
    ]
}

/// Reads a side.
fn side(
    root: &Path,
    name: &str,
    wanted: &Wanted,
    read: &mut Read,
) -> anyhow::Result<(String, Side)> {
    let targets = scan::find(root, Table::Targets, wanted)?;
    let (survey, _) = scan::each(
        &targets,
        Survey::default,
        |survey, file, part, group| part.targets(group, wanted, |row| survey.add(&file.host, row)),
        Survey::merge,
    );
    if survey.hosts() == 0 {
        bail!(
            "no interval is of the side “{name}”: `ctrace fleet report FOLDER --by version` lists what there is"
        );
    }
    let side = survey.side();
    let (of_targets, told) = scan::each(
        &targets,
        || side.empty(),
        |side, file, part, group| {
            part.targets(group, wanted, |row| side.add_target(&file.host, row))
        },
        Side::merge,
    );
    read.add(told);
    let functions = scan::find(root, Table::Functions, wanted)?;
    let (of_functions, told) = scan::each(
        &functions,
        || side.empty(),
        |side, file, part, group| {
            part.functions(group, wanted, |row| side.add_function(&file.host, row))
        },
        Side::merge,
    );
    read.add(told);
    let hosts = counted(survey.hosts() as u64, "host", "hosts");
    Ok((format!("{name}, {hosts}"), of_targets.merge(of_functions)))
}
