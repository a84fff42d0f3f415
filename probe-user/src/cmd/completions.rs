//! `ctrace completions`: derived from the command line's definition.

use super::Failure;
use crate::cli::{Cli, CompletionsArgs};
use clap::CommandFactory;

pub(super) fn main(args: &CompletionsArgs) -> Result<u8, Failure> {
    clap_complete::generate(args.shell, &mut Cli::command(), "ctrace", &mut std::io::stdout());
    Ok(0)
}
