//! The command line of `ctrace diff`.

use super::{QueryArgs, values};
use crate::ui::DiffView;
use clap::{Args, ValueEnum};
use ctrace_core::diff::Metric;
use std::path::PathBuf;

/// Compare recordings: what changed, and what is only noise
#[derive(Debug, Args)]
#[command(
    after_help = "OLD and NEW are recordings; reports of `--format json` can be compared too, but \
    nothing in them tells a change from noise. Several recordings of each side tell what differs \
    from run to run of the same program; files of one `record --rotate` are one recording. \
    docs/diff.md says how it is judged.\n\n\
    Exit status: 0; 1 when --fail-over is exceeded; 125 any failure of ctrace itself.\n\nExamples:\n  \
    ctrace diff old.ctrace new.ctrace\n  \
    ctrace diff old.ctrace new.ctrace -f 'parse*' --metric p99 --fail-over 5%\n  \
    ctrace diff o1.ctrace n1.ctrace --old o2.ctrace --new n2.ctrace --old o3.ctrace --new n3.ctrace\n  \
    ctrace diff old.ctrace new.ctrace --format json -o diff.json"
)]
pub(crate) struct DiffArgs {
    /// What it was: a file that `ctrace record` wrote
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// What it is now
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// Another recording of what it was; repeatable
    #[arg(long = "old", value_name = "FILE")]
    pub more_old: Vec<PathBuf>,
    /// Another recording of what it is now; repeatable
    #[arg(long = "new", value_name = "FILE")]
    pub more_new: Vec<PathBuf>,
    #[command(flatten)]
    pub judge: JudgeArgs,
    #[command(flatten)]
    pub query: QueryArgs,
    #[command(flatten)]
    pub output: DiffOutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The verdict")]
pub(crate) struct JudgeArgs {
    /// What the verdict is about
    #[arg(long, value_name = "METRIC", default_value = "p50", value_parser = values::metrics())]
    pub metric: Metric,
    /// Exit with 1 if a function is significantly worse by more than this
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    pub fail_over: Option<f64>,
    /// Changes up to this do not matter
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = values::percent)]
    pub margin: f64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct DiffOutputArgs {
    #[arg(long, value_enum, default_value_t)]
    pub format: DiffFormat,
    /// What to show; repeatable
    #[arg(long = "view", value_name = "VIEW", value_enum, default_value = "functions")]
    pub views: Vec<DiffView>,
    /// Sort rows by a column: verdict, change, name, or a metric
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
    /// Show only the first N rows
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<usize>)]
    pub top: Option<usize>,
    /// Leave out rows with less than this percent of the time on both sides
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    pub min_percent: Option<f64>,
    /// Write to this file; - is stdout
    #[arg(short, long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    #[default]
    Table,
    Json,
}
