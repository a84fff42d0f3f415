//! Parse and dispatch; every failure is one line on stderr.

use crate::{
    bpf,
    cli::{Cli, Internal},
    cmd::{self, Failure},
    heal, limits, ui,
};
use clap::{Parser, error::ErrorKind};
use std::process::ExitCode;

pub fn main() -> ExitCode {
    limits::run(start)
}

fn start() -> ExitCode {
    if limits::is_internal() {
        return match Internal::try_parse() {
            Ok(internal) => run(0, || cmd::dispatch_internal(internal)),
            Err(error) => usage(&error),
        };
    }
    match Cli::try_parse() {
        Ok(cli) => run(cli.verbose, || cmd::dispatch(cli)),
        Err(error) => usage(&error),
    }
}

fn run(verbose: u8, command: impl FnOnce() -> Result<u8, Failure>) -> ExitCode {
    start_log(verbose);
    bpf::can_be_started(heal::aftermath::of_guard);
    let _end = End;
    match command() {
        Ok(code) => ExitCode::from(code),
        Err(failure) => fail(&failure),
    }
}

/// However `main` ends, it waits for the removal of all probes.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        bpf::finish(ui::say);
    }
}

fn fail(failure: &Failure) -> ExitCode {
    ui::say(&failure.message());
    ExitCode::from(failure.code())
}

/// Help and version as clap prints them; a mistake as one line.
fn usage(error: &clap::Error) -> ExitCode {
    let help = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    if help.contains(&error.kind()) {
        // A closed pipe (`ctrace --help | head`) is no failure.
        let _ = error.print();
        return if error.use_stderr() { ExitCode::from(Failure::OWN) } else { ExitCode::SUCCESS };
    }
    fail(&Failure::usage(error))
}

fn start_log(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_env("CTRACE_LOG").unwrap_or_else(|_| {
        tracing_subscriber::EnvFilter::new(format!("ctrace_user={level},ebpf={level}"))
    });
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| ui::output::log::Log(std::io::stderr()))
        .with_target(false)
        .without_time()
        .init();
}
