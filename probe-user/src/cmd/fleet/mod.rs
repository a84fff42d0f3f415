//! `ctrace fleet`: queries the tables of many machines.

mod compact;
mod diff;
mod flamegraph;
mod report;
mod scan;
mod slow;

use super::Failure;
use crate::{
    cli::{FleetArgs, FleetCommand, FleetWhatArgs},
    ui::{self, text::units::counted},
};
use ctrace_core::{fleet::Wanted, glob::Glob, recording::replay::start_threads};
use scan::Read;

pub(super) fn main(args: &FleetArgs) -> Result<u8, Failure> {
    // Files are read in parallel.
    start_threads()?;
    match &args.command {
        FleetCommand::Report(args) => report::main(args),
        FleetCommand::Diff(args) => diff::main(args),
        FleetCommand::Flamegraph(args) => flamegraph::main(args),
        FleetCommand::Slow(args) => slow::main(args),
        FleetCommand::Compact(args) => compact::main(args),
    }
}

fn wanted(what: &FleetWhatArgs, version: Option<&String>) -> Wanted {
    let globs = |texts: &[String]| texts.iter().map(|text| Glob::new(text)).collect();
    Wanted {
        hosts: globs(&what.hosts),
        units: globs(&what.units),
        since_ns: what.since,
        until_ns: what.until,
        functions: globs(&what.functions),
        version: version.cloned(),
    }
}

/// The number of damaged files that are named.
const NAMED: usize = 10;

/// Tells which files could not be read.
fn say_damaged(read: &Read) {
    read.damaged.iter().take(NAMED).for_each(|(path, why)| {
        ui::say(&format!("{} {why}; it is left out", path.display()));
    });
    if let Some(more) = read.damaged.len().checked_sub(NAMED).filter(|more| *more > 0) {
        let files = counted(more as u64, "more file is", "more files are");
        ui::say(&format!("{files} left out, too"));
    }
}
