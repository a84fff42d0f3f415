//! The running process that a command is about: the same words wherever one is chosen.

use crate::target::lookup::ProcessName;
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(crate) struct ProcessArgs {
    /// The running process: a PID, a name, a systemd unit, or the path of its program
    #[arg(short, long, value_name = "PROCESS", value_parser = ProcessName::parse)]
    pub pid: Option<ProcessName>,
    /// The process that runs this program file
    #[arg(long, value_name = "PATH", conflicts_with = "pid")]
    pub exe: Option<PathBuf>,
}

impl ProcessArgs {
    /// Returns all chosen processes. `words`: those that stand by themselves on the command line.
    pub(crate) fn all_chosen(&self, words: &[ProcessName]) -> Vec<ProcessName> {
        let first = self.chosen(words.first());
        first.into_iter().chain(words.iter().skip(1).cloned()).collect()
    }

    /// Returns the chosen process. `word`: one that stands by itself on the command line.
    pub(crate) fn chosen(&self, word: Option<&ProcessName>) -> Option<ProcessName> {
        let exe = self.exe.as_ref().map(|exe| ProcessName::Exe(exe.clone()));
        exe.or_else(|| self.pid.clone()).or_else(|| word.cloned())
    }
}
