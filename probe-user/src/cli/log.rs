//! `ctrace log`.

use super::LinesArgs;
use clap::{Args, ValueEnum};
use ctrace_core::points::Level;
use regex::Regex;

/// Print the messages of all threads and processes in order of time, live or from a recording
#[derive(Debug, Args)]
#[command(
    after_help = "A message is a point in time with a text: one of a marker (message!, CTRACE_MESSAGE), or a \
    USDT probe whose text is read (--arg 'PROVIDER:PROBE: 0:str'). A line has the time since the start, PID/TID and name of the thread, the \
    level if there are any, the traced functions and scopes around the message, its name and its text: \
    request > parse > app:log: text.\n\n\
    The lines of a command go to stderr, as stdout is the command's. Those of processes and of a \
    recording go to stdout. -o changes that. With a command, ctrace exits as the command did.\n\n\
    Examples:\n  \
    sudo ctrace log 4711                                          messages of markers\n  \
    sudo ctrace log 4711 --arg 'app:log: 0:str'\n  \
    sudo ctrace log --follow --arg 'app:log_*: 0:str' --level warn -o log.txt -- ./server\n  \
    sudo ctrace log 4711 --arg 'app:log: 0:str' -f 'handle_*'     with the functions around each\n  \
    ctrace log run.ctrace --grep 'time(d )?out' --time 10s..11s\n  \
    ctrace log run.ctrace --json | jq -r 'select(.pid == 4711) | .text'"
)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    pub lines: LinesArgs,
    /// Print a JSON object for each message
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Only messages of this level and above; those without a level are left out
    #[arg(long, value_enum, help_heading = "Which messages")]
    pub level: Option<LevelArg>,
    /// Only messages whose text matches this regular expression
    #[arg(long, value_name = "REGEX", help_heading = "Which messages")]
    pub grep: Option<Regex>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelArg {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl From<LevelArg> for Level {
    fn from(level: LevelArg) -> Self {
        match level {
            LevelArg::Trace => Self::Trace,
            LevelArg::Debug => Self::Debug,
            LevelArg::Info => Self::Info,
            LevelArg::Warn => Self::Warn,
            LevelArg::Error => Self::Error,
        }
    }
}
