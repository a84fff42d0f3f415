//! Converts recordings for other tools.
//!
//! Each format is a module with one function and one entry in [`Format::ALL`], from which the
//! command line, its help and the tests of every format derive. All read the recording chunk by
//! chunk, as a query sees it. Formats with single calls write each call as it comes. The others
//! keep sums by call path, so the memory does not grow with the number of calls.
//!
//! [`stream`] is beside them: it has the calls in order of time, and also while they happen.
//!
//! Data missing from a recording are missing from its export. [`Coverage`] counts them, and goes
//! into the file if the format has a place for it.

mod calls_csv;
mod calls_jsonl;
mod chrome;
mod coverage;
mod edges;
#[cfg(test)]
mod edges_tests;
mod enclosing;
mod excerpt;
mod firefox;
mod flamegraph;
mod folded;
mod frame;
mod frame_titles;
pub(crate) mod labels;
mod lines;
mod messages_jsonl;
mod out;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
mod path_sums;
mod per_path;
mod perfetto;
mod pprof;
pub mod pprof_file;
pub mod protobuf;
mod samples;
mod speedscope;
pub mod stacks;
pub mod stream;

pub use calls_jsonl::JsonLines;
pub use coverage::Coverage;
pub use excerpt::Ended;
pub use flamegraph::Drawing;
pub use labels::UNKNOWN_FRAMES;
pub use messages_jsonl::JsonMessages;

use crate::recording::replay::Query;
use crate::recording::{RecordError, Recording};
use crate::units::FuncId;
use excerpt::Excerpt;
use out::Out;
use std::io::{self, Write};
use std::num::NonZeroUsize;

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("the recording {0}")]
    Read(#[from] RecordError),
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    #[error("there is nothing to draw: no call in the recording took any time")]
    NothingToDraw,
    #[error("there is no such frame: {frames} calls of the function have a known duration")]
    NoSuchFrame { frames: usize },
    #[error(
        "there is no such frame: {frames} are known between marks of that name, and {unknown} are not, \
         as marks may be missing there"
    )]
    NoSuchMarkedFrame { frames: usize, unknown: u64 },
    #[error(
        "this is too much for the format: choose a part (--time, --thread, -f, --caller, --depth)"
    )]
    TooMuch,
}

/// The part of a recording to export, and options.
pub struct Export<'a> {
    pub recording: &'a Recording,
    /// The part to export.
    pub query: &'a Query,
    pub options: Options<'a>,
    /// Called after each chunk with the number of calls in it.
    pub progress: &'a dyn Fn(u64),
}

/// Choices that only some formats have: see [`Format::takes`].
#[derive(Default)]
pub struct Options<'a> {
    /// Merge stacks from their innermost frames.
    pub reversed: bool,
    /// Show the change since this recording, as its query filters it.
    pub older: Option<(&'a Recording, &'a Query)>,
    pub table: ExportTable,
    /// Only what ended in this frame.
    pub frame: Option<ChosenFrame>,
}

/// A frame: a call of a function that is in no other call of it, or the time between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenFrame {
    pub function: FuncId,
    /// Its number in the order of time, or the longest.
    pub number: Option<NonZeroUsize>,
}

/// A table of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportTable {
    #[default]
    Calls,
    Functions,
}

/// One of [`Options`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Reversed,
    Older,
    Table,
    Frame,
}

type Function = fn(&Excerpt<'_>, Out<'_>) -> Result<Coverage, ExportError>;

/// A format of exports.
pub struct Format {
    pub name: &'static str,
    /// The help text, one line.
    pub help: &'static str,
    /// The extension of the file's name, without the dot.
    pub extension: &'static str,
    /// True if it must not go to a terminal.
    pub is_binary: bool,
    pub takes: &'static [Choice],
    /// True if it shows the values of calls. Otherwise they are not even read.
    pub shows_values: bool,
    function: Function,
}

impl Format {
    /// All formats.
    pub const ALL: &'static [Self] = &[
        Self::text(
            "folded",
            "call paths with their self time, for flame graph tools",
            "folded",
            folded::write,
        ),
        Self {
            takes: &[Choice::Reversed, Choice::Older],
            ..Self::text("flamegraph", "a flame graph for a browser", "svg", flamegraph::write)
        },
        Self::text(
            "chrome",
            "every call, for chrome://tracing and ui.perfetto.dev",
            "json",
            chrome::write,
        )
        .with_values(),
        Self::binary(
            "perfetto",
            "every call in little room, for ui.perfetto.dev",
            "pftrace",
            perfetto::write,
        )
        .with_values(),
        Self::text(
            "firefox",
            "samples of every thread, for profiler.firefox.com",
            "json",
            firefox::write,
        ),
        Self::text(
            "speedscope",
            "call paths by thread, for speedscope.app",
            "speedscope.json",
            speedscope::write,
        ),
        Self::binary("pprof", "call paths by thread, for go tool pprof", "pb.gz", pprof::write),
        Self::text("csv", "every call as a row", "csv", calls_csv::write).with_values(),
        Self::text("jsonl", "every call as a line of JSON", "jsonl", calls_jsonl::write)
            .with_values(),
        Self {
            takes: &[Choice::Frame],
            ..Self::text(
                "frame",
                "the calls of one frame (--frame) of all threads, as ChronoProfiler's JSON",
                "json",
                frame::write,
            )
        },
        #[cfg(feature = "parquet")]
        Self {
            takes: &[Choice::Table],
            ..Self::binary(
                "parquet",
                "calls or functions as a table for DuckDB, Polars, Spark",
                "parquet",
                parquet::write,
            )
        },
    ];

    const fn text(
        name: &'static str,
        help: &'static str,
        extension: &'static str,
        function: Function,
    ) -> Self {
        let (is_binary, shows_values) = (false, false);
        Self { name, help, extension, is_binary, takes: &[], shows_values, function }
    }

    const fn binary(
        name: &'static str,
        help: &'static str,
        extension: &'static str,
        function: Function,
    ) -> Self {
        Self { is_binary: true, ..Self::text(name, help, extension, function) }
    }

    const fn with_values(self) -> Self {
        Self { shows_values: true, ..self }
    }

    /// Returns the format called `name`.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|format| format.name == name)
    }

    /// Writes the recording to `out`. Returns the counts of calls and missing data.
    pub fn write(
        &self,
        export: &Export<'_>,
        out: &mut (dyn Write + Send),
    ) -> Result<Coverage, ExportError> {
        (self.function)(&Excerpt::new(export, self.shows_values), Out::new(out))
    }
}
