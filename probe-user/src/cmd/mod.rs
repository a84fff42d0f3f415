//! One file per subcommand, and their common failure.

mod aggregate;
mod attach;
mod completions;
mod ctl;
mod daemon;
mod diff;
mod doctor;
mod exec;
mod export;
#[cfg(feature = "parquet")]
mod fleet;
mod guard;
mod heal;
mod list;
mod live_timeline;
mod log;
mod man;
mod open;
mod process;
mod query;
mod record;
mod report;
mod run;
mod spec;
mod timeline;
mod top;
mod trace;

use crate::{
    bpf::MORE_OPEN_FILES,
    cli::{Cli, Command, Internal, InternalCommand},
    session::{
        keep::sink::{Default, Out},
        plan::Plan,
        run::setup::describe,
    },
    ui,
};
use ctrace_core::units::Pid;

/// Runs the subcommand. Returns the exit status.
pub(crate) fn dispatch(cli: Cli) -> Result<u8, Failure> {
    let verbose = cli.verbose;
    ui::output::terminal::choose(cli.color);
    match cli.command {
        Command::Doctor(args) => doctor::main(&args),
        Command::List(args) => list::main(&args, verbose),
        Command::Run(args) => run::main(&args, verbose),
        Command::Attach(args) => attach::main(&args, verbose),
        Command::Top(args) => top::main(*args),
        Command::Trace(args) => trace::main(*args, verbose),
        Command::Log(args) => log::main(*args, verbose),
        Command::Record(args) => record::main(&args, verbose),
        Command::Report(args) => report::main(&args),
        Command::Ui(args) => timeline::main(*args),
        Command::Diff(args) => diff::main(&args),
        Command::Export(args) => export::main(&args),
        #[cfg(feature = "parquet")]
        Command::Fleet(args) => fleet::main(&args),
        Command::Ctl(args) => ctl::main(&args),
        Command::Daemon(args) => daemon::main(&args),
        Command::Completions(args) => completions::main(&args),
        Command::Man(args) => man::main(&args),
    }
}

/// Runs a command that ctrace has started itself with.
pub(crate) fn dispatch_internal(internal: Internal) -> Result<u8, Failure> {
    match internal.command {
        InternalCommand::Exec(args) => Err(exec::main(&args)),
        InternalCommand::Guard => guard::main(),
        InternalCommand::Heal(args) => heal::main(&args),
    }
}

/// Prints a text to stdout. A reader who has had enough of it is no failure.
fn print(text: &str) -> Result<(), Failure> {
    Out::open(None, Default::Stdout)?.write(text)?;
    Ok(())
}

/// With -v, tells what is going to be traced.
fn announce(verbose: u8, plan: &Plan, pid: Pid) {
    if verbose == 0 {
        return;
    }
    let count = plan.functions();
    // `ctrace list` counts them, too.
    let refused = match plan.refused.len() {
        0 => String::new(),
        n => format!("; {n} more match and are not traced"),
    };
    ui::say(&format!(
        "tracing {count} functions, probes and marker scopes of process {}{refused}",
        pid.0
    ));
    for line in describe(plan) {
        ui::say(&line);
    }
}

/// A failure of ctrace: the exit status and one line for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    /// The status of any failure of ctrace itself, as in `env` and `timeout`.
    pub(crate) const OWN: u8 = 125;

    /// Makes a failure with its own exit status.
    pub(crate) fn new(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into() }
    }

    /// Makes a failure of clap's error, without its usage block.
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
        let line = line.replace(" For more information, try '--help'.", "").replace(" tip: ", "; ");
        // Nobody who mistypes an option means a value.
        let line = line.split("; to pass '").next().unwrap_or_default();
        Self::new(Self::OWN, anyhow::anyhow!("{line}; --help tells more"))
    }

    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// Returns one line, whatever the error contains. A repeated cause is left out.
    pub(crate) fn message(&self) -> String {
        let mut message = self.error.to_string();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            if !message.contains(&cause) {
                message = format!("{message}: {cause}");
            }
        }
        if self.lacks_open_files() && !message.contains(MORE_OPEN_FILES) {
            message = format!("{message}; {MORE_OPEN_FILES}");
        }
        message.replace('\n', " ")
    }

    /// Returns whether there were no more open files to be had.
    fn lacks_open_files(&self) -> bool {
        let mut errors = self.error.chain().filter_map(|it| it.downcast_ref::<std::io::Error>());
        errors.any(|it| matches!(it.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)))
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

    #[test]
    fn too_few_open_files_have_a_remedy_once() {
        let source = || std::io::Error::from_raw_os_error(24);
        let signals = Err::<(), _>(source()).context("cannot listen").unwrap_err();
        assert_eq!(
            Failure::from(signals).message(),
            "cannot listen: Too many open files (os error 24); raise the limit of open files (ulimit -n)"
        );
        let ring = BpfError::Create { what: "a ring".into(), source: source() };
        assert_eq!(Failure::from(ring).message().matches("ulimit -n").count(), 1);
    }
}
