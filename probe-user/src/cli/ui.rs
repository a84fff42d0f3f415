//! `ctrace ui`.

use super::{ChosenUserArgs, ProcessArgs, WhatArgs, options::RECORDING, values};
use clap::{Args, Command, FromArgMatches as _};
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// Look at every call of a recording, or of a process that runs, on a timeline in the browser
#[derive(Debug, Args)]
#[command(
    after_help = "Prints an address for a browser on this machine. Nobody else gets an answer: the \
    address has a random token. Press ? on the page for the keys. Ctrl-C ends.\n\nExamples:\n  \
    ctrace ui trace.ctrace\n  \
    ctrace ui trace.ctrace --port 8080          with ssh -L 8080:127.0.0.1:8080 from another machine\n  \
    ctrace ui trace*.ctrace                     the files of `record --rotate` as one\n  \
    ctrace ui new.ctrace --against old.ctrace   two recordings below each other\n  \
    sudo ctrace ui --live 4711 -f 'handle_*'    the calls of a process, as they come\n  \
    sudo ctrace ui --live -f 'handle_*' -- ./server --port 80"
)]
pub(crate) struct UiArgs {
    /// A recording, or all files that `--rotate` made of it [default: ./trace.ctrace]. With --live the
    /// process: a PID, a name, a systemd unit, or the path of its program
    #[arg(value_name = "FILE|PROCESS", conflicts_with_all = ["chosen", "command"])]
    pub files: Vec<PathBuf>,
    /// Compare with this older recording: both on one page, with one zoom, and the verdicts of `ctrace diff`.
    /// Repeat it for the files that `--rotate` made of one
    #[arg(long, value_name = "OLD", conflicts_with_all = ["live", "command"])]
    pub against: Vec<PathBuf>,
    /// Trace a process or a command, and show its calls as they come. Takes the options below
    #[arg(long)]
    pub live: bool,
    /// Keep the calls of this time (also 90s, 2h), the newest of them if they take more than 32 MiB
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = values::seconds)]
    pub keep: Duration,
    /// The port on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Neither use nor keep a large recording's timeline in the cache folder (~/.cache/ctrace): all calls are read
    #[arg(long, conflicts_with_all = ["live", "command"])]
    pub no_cache: bool,
    /// Take the page's files from this folder: for work on the page
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub ui_dir: Option<PathBuf>,
    /// Read at most this many calls of each recording [default: 16 for each byte of its file, plus
    /// 4 million; recordings of ctrace never have more]
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<u64>)]
    pub max_calls: Option<u64>,
    #[command(flatten)]
    pub by: ProcessArgs,
    /// A command to launch and trace, from the first instruction of main
    #[arg(value_name = "CMD", last = true, conflicts_with = "chosen")]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub user: ChosenUserArgs,
    #[command(flatten)]
    pub what: WhatArgs,
}

impl UiArgs {
    /// Returns the recording's files.
    pub(crate) fn recording(&self) -> Vec<PathBuf> {
        match &self.files[..] {
            [] => vec![RECORDING.into()],
            files => files.to_vec(),
        }
    }

    /// Returns whether nothing was given that only a live page has.
    pub(crate) fn is_of_recording(&self) -> bool {
        let none = Self::augment_args(Command::new("ui")).try_get_matches_from(["ui"]);
        let none = none.and_then(|none| Self::from_arg_matches(&none));
        let own = |args: &Self| {
            let Self { keep, by, command, user, what, .. } = args;
            (*keep, by.clone(), command.clone(), user.clone(), what.clone())
        };
        none.is_ok_and(|none| own(&none) == own(self))
    }
}
