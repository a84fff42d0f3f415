//! The command line of `ctrace diff`.

use super::{
    QueryArgs,
    options::{RECORDING, TIME},
    values,
};
use crate::ui::DiffView;
use anyhow::{bail, ensure};
use clap::{ArgAction, Args, ValueEnum};
use ctrace_core::{
    diff::{Metric, Options},
    report::By,
    units::Nanos,
};
use std::{ops::Range, path::PathBuf};

/// The help of `--time`, which a comparison takes twice.
const TIMES: &str = "Only calls that ended in this time since the start, such as 10s..20s, ..5s or 1m.. \
    Given twice, the first is of OLD and the second of NEW, or both are of OLD if there is no other file";
/// The times that a comparison has, at most: one for each side.
const MOST_TIMES: usize = 2;

/// Compare recordings, and tell changes from noise
#[derive(Debug, Args)]
#[command(
    mut_arg(TIME, |arg| arg.action(ArgAction::Append).help(TIMES)),
    override_usage = "ctrace diff [OPTIONS] OLD NEW\n       \
        ctrace diff [OPTIONS] OLD... -- NEW...",
    after_help = "OLD and NEW are recordings. OLD alone is compared with ./trace.ctrace. One recording \
    of each side does not show what differs from run to run of the same program; five of each side \
    (OLD... -- NEW...), recorded in turns, do. A verdict of `cannot tell` means: record longer, and \
    more often. The files of one `record --rotate` count as one recording. Reports of `--format json` \
    also work, but cannot tell a change from noise. docs/diff.md explains the verdict.\n\n\
    Exit status: 0 pass, 1 --fail-over exceeded, 125 error.\n\nExamples:\n  \
    ctrace diff old.ctrace new.ctrace\n  \
    ctrace diff old.ctrace new.ctrace -f 'parse*' --metric p99 --fail-over 5%\n  \
    ctrace diff old*.ctrace -- new*.ctrace           several recordings of each side\n  \
    ctrace diff a.ctrace --time 0s..5s --time 30s..35s     two times of one recording\n  \
    ctrace diff old.ctrace new.ctrace --by 'handle: key'   for each value of an argument\n  \
    ctrace diff old.ctrace new.ctrace --format json -o diff.json"
)]
pub(crate) struct DiffArgs {
    /// The old recording and the new one; before --, all old recordings
    #[arg(value_name = "OLD", required_unless_present = "after")]
    pub before: Vec<PathBuf>,
    /// All new recordings
    #[arg(value_name = "NEW", last = true)]
    pub after: Vec<PathBuf>,
    /// Another old recording; repeatable
    #[arg(long = "old", value_name = "FILE", help_heading = "More recordings")]
    pub more_old: Vec<PathBuf>,
    /// Another new recording; repeatable
    #[arg(long = "new", value_name = "FILE", help_heading = "More recordings")]
    pub more_new: Vec<PathBuf>,
    #[command(flatten)]
    pub judge: JudgeArgs,
    #[command(flatten)]
    pub query: QueryArgs,
    #[command(flatten)]
    pub output: DiffOutputArgs,
}

impl DiffArgs {
    /// Returns the files of both sides.
    pub(crate) fn sides(&self) -> anyhow::Result<[Vec<PathBuf>; 2]> {
        let times = self.query.lens.times.len();
        ensure!(
            times <= MOST_TIMES,
            "{times} times: give --time once for both sides, or for each of them"
        );
        let (before, after) = (&self.before[..], &self.after[..]);
        let has_two_times = times == MOST_TIMES;
        let (old, new) = match (before, after) {
            ([old, new], []) | ([], [old, new]) => (vec![old.clone()], vec![new.clone()]),
            ([old], []) if !self.more_new.is_empty() => (vec![old.clone()], Vec::new()),
            ([old], []) if has_two_times => (vec![old.clone()], vec![old.clone()]),
            ([old], []) => (vec![old.clone()], vec![RECORDING.into()]),
            ([_, ..], [_, ..]) => (before.to_vec(), after.to_vec()),
            (files, []) | ([], files) => bail!(
                "which of these {} files are old, and which are new? Put -- between them: ctrace \
                 diff OLD... -- NEW...",
                files.len()
            ),
        };
        Ok([[old, self.more_old.clone()].concat(), [new, self.more_new.clone()].concat()])
    }

    /// Returns the time to look at on each side.
    pub(crate) fn times(&self) -> [Option<&Range<Nanos>>; 2] {
        let times = &self.query.lens.times;
        [times.first(), times.last()]
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The verdict")]
pub(crate) struct JudgeArgs {
    /// The metric that decides the verdict
    #[arg(long, value_name = "METRIC", default_value = "p50", value_parser = values::Metrics)]
    pub metric: Metric,
    /// Exit with 1 if a function is significantly worse by more than this
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    pub fail_over: Option<f64>,
    /// Ignore changes up to this
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = values::percent)]
    pub margin: f64,
}

impl JudgeArgs {
    /// Returns how to judge, and by which metric to sort: `sort` may name another column.
    pub(crate) fn options(&self, sort: Option<&str>) -> Options {
        Options {
            metric: self.metric,
            sort: sort.and_then(|name| name.parse().ok()),
            fail_over: self.fail_over,
            margin: self.margin,
        }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct DiffOutputArgs {
    #[arg(long, value_enum, default_value_t)]
    pub format: DiffFormat,
    /// The view to show; repeatable
    #[arg(long = "view", value_name = "VIEW", value_enum, default_value = "functions")]
    pub views: Vec<DiffView>,
    /// Compare each part for itself as well: exe, cgroup, name (of threads), or the calls of FUNCTION by an
    /// argument or by their result (retval)
    #[arg(long, value_name = "PART", value_parser = values::by)]
    pub by: Option<By>,
    /// Sort rows by a column: verdict, change, name, or a metric
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
    /// Show only the first N rows
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<usize>)]
    pub top: Option<usize>,
    /// Leave out rows below this percentage of the time on both sides
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

#[cfg(test)]
mod tests {
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn sides(words: &str) -> anyhow::Result<String> {
        let words = format!("ctrace diff {words}");
        let cli = Cli::try_parse_from(words.split_whitespace())?;
        let Command::Diff(args) = cli.command else { panic!("a diff") };
        let [old, new] = args.sides()?.map(|side| {
            side.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" ")
        });
        Ok(format!("{old} | {new}"))
    }

    #[test]
    fn the_files_of_both_sides() {
        for (words, expected) in [
            ("a b", "a | b"),
            ("-- a b", "a | b"),
            ("a1 a2 -- b1 b2 b3", "a1 a2 | b1 b2 b3"),
            ("a --metric p99 -- b", "a | b"),
            ("a", "a | trace.ctrace"),
            ("a --new b", "a | b"),
            ("a --time 0s..5s --time 30s..35s", "a | a"),
            ("a b --time 0s..5s --time 30s..35s", "a | b"),
            ("a --time 0s..5s", "a | trace.ctrace"),
            ("a b --old c --new d --new e", "a c | b d e"),
        ] {
            assert_eq!(sides(words).expect(words), expected, "{words}");
        }
        for (words, told) in [
            ("a b c", "these 3 files"),
            ("-- a b c d", "these 4 files"),
            ("a --time 1s.. --time 2s.. --time 3s..", "3 times"),
            ("", "OLD"),
        ] {
            let error = sides(words).expect_err(words).to_string();
            assert!(error.contains(told), "{words}: {error}");
        }
    }
}
