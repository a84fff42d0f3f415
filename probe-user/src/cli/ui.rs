//! `ctrace ui`.

use super::{options::RECORDING, values};
use clap::Args;
use std::path::PathBuf;

/// Look at every call of a recording on a timeline in the browser
#[derive(Debug, Args)]
#[command(
    after_help = "Prints an address for a browser on this machine. Nobody else gets an answer: the \
    address has a random token. Press ? on the page for the keys. Ctrl-C ends.\n\nExamples:\n  \
    ctrace ui trace.ctrace\n  \
    ctrace ui trace.ctrace --port 8080          with ssh -L 8080:127.0.0.1:8080 from another machine\n  \
    ctrace ui trace*.ctrace                     the files of `record --rotate` as one"
)]
pub(crate) struct UiArgs {
    /// A recording, or all files that `--rotate` made of it
    #[arg(value_name = "FILE", default_value = RECORDING)]
    pub files: Vec<PathBuf>,
    /// The port on 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Take the page's files from this folder: for work on the page
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub ui_dir: Option<PathBuf>,
    /// Read at most this many calls of each recording [default: 16 for each byte of its file, plus
    /// 4 million; recordings of ctrace never have more]
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<u64>)]
    pub max_calls: Option<u64>,
}
