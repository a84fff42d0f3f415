//! `ctrace completions`: derived from the command line's definition.

use super::Failure;
use crate::{
    cli::{Cli, CompletionsArgs},
    session::keep::sink::{Default, Out},
};
use clap::CommandFactory;

pub(super) fn main(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ctrace", &mut script);
    Out::open(None, Default::Stdout)?.write(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
