//! The command line of `ctrace fleet`.

use super::{DiffFormat, diff::JudgeArgs, values};
use clap::{Args, Subcommand, ValueEnum};
use ctrace_core::fleet::{
    partition::{NANOS_A_DAY, day_named},
    sums::By,
};
use std::{path::PathBuf, time::SystemTime};

/// Query the tables that daemons write: many machines, days and builds
#[derive(Debug, Args)]
#[command(
    after_help = "Daemons write the tables with `folder` in [fleet]. Copy or mount the folders of \
    all machines into one. docs/fleet/README.md begins with one daemon and ends with a query over two \
    machines.\n\nExamples:\n  \
    ctrace fleet report /srv/fleet --by host --since 2026-11-28\n  \
    ctrace fleet report /srv/fleet --unit 'redis*' -f '*Command' --format json\n  \
    ctrace fleet diff /srv/fleet --version 3f1c 8a02       two builds, apart from noise\n  \
    ctrace fleet flamegraph /srv/fleet --since 1d -o fleet.svg"
)]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    Report(FleetReportArgs),
    Diff(FleetDiffArgs),
    Flamegraph(FleetFlamegraphArgs),
    Slow(FleetSlowArgs),
    Compact(FleetCompactArgs),
}

/// Print where the time goes on all machines together
#[derive(Debug, Args)]
#[command(
    after_help = "Counts and sums are exact. Percentiles are the middle of a bucket, within 3.2 %."
)]
pub(crate) struct FleetReportArgs {
    #[command(flatten)]
    pub what: FleetWhatArgs,
    /// A build id of the program, or how it begins
    #[arg(long, value_name = "ID", help_heading = "What to read")]
    pub version: Option<String>,
    /// Divide into parts, with a table each
    #[arg(long, value_enum, help_heading = "Output")]
    pub by: Option<ByArg>,
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: DiffFormat,
    /// Sort rows by a column
    #[arg(long, value_name = "COLUMN", help_heading = "Output")]
    pub sort: Option<String>,
    /// Show only the first N rows of each table
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<usize>, help_heading = "Output")]
    pub top: Option<usize>,
    /// Write to this file; - is stdout
    #[arg(short, long = "output", value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// Compare two builds, or the time before and after a moment, and tell changes from noise
#[derive(Debug, Args)]
#[command(
    after_help = "The verdict is that of `ctrace diff` (docs/diff.md). Hosts take the place of \
    recordings: what differs from host to host is no change.\n\n\
    Exit status: 0 pass, 1 --fail-over exceeded, 125 error.\n\nExamples:\n  \
    ctrace fleet diff /srv/fleet --version 3f1c 8a02\n  \
    ctrace fleet diff /srv/fleet --before 2026-11-28T14:30 --since 2d --metric p99"
)]
pub(crate) struct FleetDiffArgs {
    #[command(flatten)]
    pub what: FleetWhatArgs,
    /// The build ids of the old program and of the new one, or how they begin
    #[arg(
        long,
        num_args = 2,
        value_names = ["OLD", "NEW"],
        required_unless_present = "before",
        conflicts_with = "before",
        help_heading = "What to compare"
    )]
    pub version: Vec<String>,
    /// Intervals that began before this time are old, the others new
    #[arg(long, value_name = "TIME", value_parser = moment, help_heading = "What to compare")]
    pub before: Option<i64>,
    #[command(flatten)]
    pub judge: JudgeArgs,
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: DiffFormat,
    /// Sort rows by a column: verdict, change, name, or a metric
    #[arg(long, value_name = "COLUMN", help_heading = "Output")]
    pub sort: Option<String>,
    /// Show only the first N rows
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<usize>, help_heading = "Output")]
    pub top: Option<usize>,
    /// Write to this file; - is stdout
    #[arg(short, long = "output", value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// Draw the call paths of all machines as an SVG, or print them as folded stacks
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ctrace fleet flamegraph /srv/fleet --unit 'redis*' -o fleet.svg\n  \
    ctrace fleet flamegraph /srv/fleet --folded | inferno-flamegraph > fleet.svg")]
pub(crate) struct FleetFlamegraphArgs {
    #[command(flatten)]
    pub what: FleetWhatArgs,
    /// A build id of the program, or how it begins
    #[arg(long, value_name = "ID", help_heading = "What to read")]
    pub version: Option<String>,
    /// Print a line for each call path with its own nanoseconds
    #[arg(long, conflicts_with = "reversed", help_heading = "Output")]
    pub folded: bool,
    /// Merge stacks from their innermost frames and draw them downwards
    #[arg(long, help_heading = "Output")]
    pub reversed: bool,
    /// Write to this file; - is stdout
    #[arg(short, long = "output", value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// Print the slowest calls of all machines, with what was inside them
#[derive(Debug, Args)]
#[command(
    after_help = "Daemons keep the slowest calls of each function and interval: `slow_calls` and \
    `slow_from` in [fleet].\n\nExamples:\n  \
    ctrace fleet slow /srv/fleet --since 1h\n  \
    ctrace fleet slow /srv/fleet -f processCommand --top 3 --format json"
)]
pub(crate) struct FleetSlowArgs {
    #[command(flatten)]
    pub what: FleetWhatArgs,
    /// A build id of the program, or how it begins
    #[arg(long, value_name = "ID", help_heading = "What to read")]
    pub version: Option<String>,
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: DiffFormat,
    /// Show only the first N calls
    #[arg(long, value_name = "N", default_value = "20", value_parser = values::at_least_one::<usize>, help_heading = "Output")]
    pub top: usize,
    /// Write to this file; - is stdout
    #[arg(short, long = "output", value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

/// Make few files of the many of finished days: the same rows in larger files
#[derive(Debug, Args)]
#[command(
    after_help = "A daemon does so itself with `compact = true` in [fleet]. Without --host, only the \
    folders of this machine are touched. Where the folders are copies, compact the originals, and copy with \
    `rsync --delete`: docs/fleet/README.md.\n\n\
    Exit status: 0 done, 1 files could not be read and stayed, 125 error: other folders are done."
)]
pub(crate) struct FleetCompactArgs {
    /// The folder of the tables
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Machines whose names match this glob, in place of this one; repeatable
    #[arg(long = "host", value_name = "GLOB", help_heading = "What to compact")]
    pub hosts: Vec<String>,
}

/// The folder, and the part of it to read.
#[derive(Debug, Args)]
pub(crate) struct FleetWhatArgs {
    /// The folder of the tables
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Only machines whose names match this glob; repeatable
    #[arg(long = "host", value_name = "GLOB", help_heading = "What to read")]
    pub hosts: Vec<String>,
    /// Only services, or targets, whose names match this glob; repeatable
    #[arg(long = "unit", value_name = "GLOB", help_heading = "What to read")]
    pub units: Vec<String>,
    /// Only functions whose names match this glob; repeatable
    #[arg(short = 'f', long = "function", value_name = "GLOB", help_heading = "What to read")]
    pub functions: Vec<String>,
    /// Only intervals that began at or after this time: 2026-11-28, 2026-11-28T14:30 (UTC), or so long
    /// ago: 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = moment, help_heading = "What to read")]
    pub since: Option<i64>,
    /// Only intervals that began before this time
    #[arg(long, value_name = "TIME", value_parser = moment, help_heading = "What to read")]
    pub until: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByArg {
    Host,
    Version,
    Unit,
}

impl From<ByArg> for By {
    fn from(by: ByArg) -> Self {
        match by {
            ByArg::Host => Self::Host,
            ByArg::Version => Self::Version,
            ByArg::Unit => Self::Unit,
        }
    }
}

/// Parses a time: a date with or without a time of day, or a length of time before now. Returns
/// nanoseconds since 1970.
fn moment(text: &str) -> Result<i64, String> {
    let (date, of_day) = text.trim_end_matches('Z').split_once('T').unwrap_or((text, "00:00"));
    if let Some(day) = day_named(date) {
        let numbers = of_day.split(':').map(|number| number.parse::<i64>().ok());
        let numbers: Option<Vec<i64>> = numbers.collect();
        let seconds = match numbers.as_deref() {
            Some([h @ 0..24, m @ 0..60]) => Some(h * 3_600 + m * 60),
            Some([h @ 0..24, m @ 0..60, s @ 0..60]) => Some(h * 3_600 + m * 60 + s),
            _ => None,
        };
        let seconds =
            seconds.ok_or_else(|| format!("`{of_day}` is no time of day, such as 14:30"))?;
        return Ok(day * NANOS_A_DAY + seconds * 1_000_000_000);
    }
    let longer = [("d", 86_400), ("h", 3_600)].into_iter();
    let mut longer = longer.filter_map(|(unit, seconds)| {
        text.strip_suffix(unit)?.parse::<u32>().ok().map(|number| u64::from(number) * seconds)
    });
    let ago = match longer.next() {
        Some(seconds) => u128::from(seconds) * 1_000_000_000,
        None => values::seconds(text)
            .map_err(
                |_| "give a date, such as 2026-11-28 or 2026-11-28T14:30, or so long ago: 2h, 7d",
            )?
            .as_nanos(),
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos().saturating_sub(ago)).map_err(|_| "out of range".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates_or_so_long_ago() {
        assert_eq!(moment("1970-01-02"), Ok(86_400_000_000_000));
        assert_eq!(moment("1970-01-01T01:02"), Ok(3_720_000_000_000));
        assert_eq!(moment("1970-01-01T01:02:03Z"), Ok(3_723_000_000_000));
        let (day, hours) = (moment("1d").expect("a time"), moment("23h").expect("a time"));
        assert!(day < hours && hours < moment("90s").expect("a time"));
        for wrong in ["", "yesterday", "1970-01-01T25:00", "1970-01-01T01", "1970-02-30", "-1d"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
