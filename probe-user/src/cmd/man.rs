//! `ctrace man`: writes one page per subcommand, derived from the command line's definition.

use super::Failure;
use crate::{
    cli::{Cli, ManArgs},
    files::{Owner, Place, make_folder},
};
use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::{io::Write, path::Path};

pub(super) fn main(args: &ManArgs) -> Result<u8, Failure> {
    make_folder(&args.folder, 0o755)?;
    let mut whole = Cli::command().disable_help_subcommand(true);
    whole.build();
    write(&whole, &args.folder)?;
    Ok(0)
}

/// Writes the page of a command, and those of its subcommands.
fn write(command: &Command, folder: &Path) -> anyhow::Result<()> {
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write(subcommand, folder)?;
    }
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    let path = folder.join(man.get_filename());
    // Pages are for everybody, and in the places where others look they are the system's.
    let mut file = Place::find(&path, Owner::Ours)?.open_public()?;
    file.set_len(0)
        .and_then(|()| file.write_all(&page))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}
