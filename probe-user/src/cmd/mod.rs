//! One file per subcommand, and the way they fail.

mod attach;
mod completions;
mod ctl;
mod daemon;
mod diff;
mod doctor;
mod exec;
mod export;
mod guard;
mod heal;
mod list;
mod man;
mod open;
mod query;
mod record;
mod report;
mod run;
mod spec;
mod top;

use crate::{
    cli::{Cli, Command},
    session::{plan::Plan, run::setup::describe},
    ui,
};
use ctrace_core::units::Pid;

/// Runs the subcommand; its value is the exit status.
pub fn dispatch(cli: Cli) -> Result<u8, Failure> {
    let verbose = cli.verbose;
    match cli.command {
        Command::Doctor(args) => doctor::main(&args),
        Command::List(args) => list::main(&args, verbose),
        Command::Run(args) => run::main(&args, verbose),
        Command::Attach(args) => attach::main(&args, verbose),
        Command::Top(args) => top::main(*args),
        Command::Record(args) => record::main(&args, verbose),
        Command::Report(args) => report::main(&args),
        Command::Diff(args) => diff::main(&args),
        Command::Export(args) => export::main(&args),
        Command::Ctl(args) => ctl::main(&args),
        Command::Daemon(args) => daemon::main(&args),
        Command::Completions(args) => completions::main(&args),
        Command::Man(args) => man::main(&args),
        Command::Exec(args) => Err(exec::main(&args)),
        Command::Guard => guard::main(),
        Command::Heal(args) => heal::main(&args),
    }
}

/// Says what is going to be traced, when asked.
fn announce(verbose: u8, plan: &Plan, pid: Pid) {
    if verbose == 0 {
        return;
    }
    let count = plan.functions();
    ui::say(&format!("tracing {count} functions, probes and marker scopes of process {}", pid.0));
    for line in describe(plan) {
        ui::say(&line);
    }
}

/// A failure of ctrace: the exit status and one line for the user.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    /// Any failure of ctrace itself, as `env` and `timeout` have it.
    pub(crate) const OWN: u8 = 125;

    /// `error` with an exit status of its own.
    pub(crate) fn new(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into() }
    }

    /// What clap found wrong, without its usage block.
    pub(crate) fn usage(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let first = text.split("\n\nUsage").next().unwrap_or_default();
        let mut line = String::new();
        for word in first.trim_start_matches("error: ").split_whitespace() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        let line = line.replace(" For more information, try '--help'.", "");
        Self::new(Self::OWN, anyhow::anyhow!("{line}; --help tells more"))
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// One line, whatever the error's texts hold. A cause that was told already is not told again.
    pub fn message(&self) -> String {
        let mut message = self.error.to_string();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            if !message.contains(&cause) {
                message = format!("{message}: {cause}");
            }
        }
        message.replace('\n', " ")
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(Self::OWN, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::BpfError;
    use anyhow::Context;

    #[test]
    fn a_cause_is_told_once() {
        let source = std::io::Error::from_raw_os_error(12);
        let error = BpfError::Create { what: "a ring".into(), source };
        let failure = Failure::from(Err::<(), _>(error).context("no\ntrace").unwrap_err());
        assert_eq!(
            failure.message(),
            "no trace: cannot create a ring: Cannot allocate memory (os error 12); make the rings \
             smaller, or raise `ulimit -v`"
        );
    }
}
