//! `ctrace man`: one page per subcommand, derived from the command line's definition.

use super::Failure;
use crate::cli::{Cli, ManArgs};
use anyhow::Context;
use clap::CommandFactory;

pub(super) fn main(args: &ManArgs) -> Result<u8, Failure> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("cannot write man pages to {}", folder.display()))?;
    Ok(0)
}
