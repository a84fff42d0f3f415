//! The running processes that a command is about: the same words wherever they are chosen.

use crate::daemon::accounts;
use crate::target::process::{
    lookup::ProcessName,
    set::{ProcessSet, User},
};
use anyhow::{anyhow, ensure};
use clap::{
    Args,
    builder::{OsStringValueParser, TypedValueParser as _},
};

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[group(id = "chosen", multiple = false)]
pub(crate) struct ProcessArgs {
    /// The running process: a PID, a name, a systemd unit, or the path of its program
    #[arg(short, long, value_name = "PROCESS", value_parser = ProcessName::parse)]
    pub pid: Vec<ProcessName>,
    /// The process that runs this program file. A glob, or --follow, means all that run such a file
    #[arg(
        long,
        value_name = "PATH",
        value_parser = OsStringValueParser::new().try_map(ProcessName::of_program)
    )]
    pub exe: Option<ProcessName>,
    /// All processes in this control group: a path, or a glob
    #[arg(long, value_name = "PATH", value_parser = ProcessSet::of_cgroup)]
    pub cgroup: Option<ProcessSet>,
    /// All processes in the container whose id begins so
    #[arg(long, value_name = "ID", value_parser = ProcessSet::of_container)]
    pub container: Option<ProcessSet>,
}

impl ProcessArgs {
    /// Returns all chosen processes: those of a user, if one is given. `words`: those that stand by
    /// themselves on the command line.
    pub(crate) fn all_of_user(
        &self,
        words: &[ProcessName],
        user: Option<&str>,
    ) -> anyhow::Result<Vec<ProcessName>> {
        let names = self.all_chosen(words);
        let Some(text) = user else { return Ok(names) };
        let id = accounts::user(text).map_err(|why| anyhow!("--user: {why}"))?;
        let user = User { id, text: text.to_owned() };
        if names.is_empty() {
            return Ok(vec![ProcessName::All(ProcessSet::User(user))]);
        }
        let of_user = |name: ProcessName| {
            let set = name.into_set().map_err(|why| anyhow!(why))?;
            Ok(ProcessName::All(set.of_user(user.clone())))
        };
        names.into_iter().map(of_user).collect()
    }

    /// Returns all chosen processes. `words`: those that stand by themselves on the command line.
    fn all_chosen(&self, words: &[ProcessName]) -> Vec<ProcessName> {
        let sets = self.cgroup.iter().chain(&self.container).cloned().map(ProcessName::All);
        let names = self.exe.iter().chain(&self.pid).chain(words).cloned();
        sets.chain(names).collect()
    }

    /// Returns the chosen process where only one can be. `word`: one that stands by itself on the
    /// command line.
    pub(crate) fn chosen(&self, word: Option<&ProcessName>) -> anyhow::Result<Option<ProcessName>> {
        let mut all = self.all_chosen(word.map_or(&[], std::slice::from_ref));
        ensure!(all.len() < 2, "give one process; attach, record, top and trace take several");
        Ok(all.pop())
    }
}
