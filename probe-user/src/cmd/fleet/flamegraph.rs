//! `ctrace fleet flamegraph`: the call paths of all machines as one picture.

use super::{Failure, say_damaged, scan, wanted};
use crate::{
    cli::FleetFlamegraphArgs,
    session::keep::sink::{Default, Out},
    ui::{self, text::units::counted},
};
use ctrace_core::{
    fleet::{Table, stacks::Paths},
    formats::{Drawing, ExportError, stacks::Stacks},
};
use std::{collections::HashMap, io::ErrorKind};

pub(super) fn main(args: &FleetFlamegraphArgs) -> Result<u8, Failure> {
    scan::check(&args.what.folder)?;
    let wanted = wanted(&args.what, args.version.as_ref());
    let out = Out::open(args.output.as_deref(), Default::Stdout)?;
    let files = scan::find(&args.what.folder, Table::Paths, &wanted)?;
    let (paths, read) = scan::each(
        &files,
        Paths::default,
        |paths, _, part, group| part.paths(group, &wanted, |row| paths.add(row)),
        Paths::merge,
    );
    say_damaged(&read);
    if paths.left_out > 0 {
        let rows = counted(paths.left_out, "row", "rows");
        ui::say(&format!("{rows} of paths found no room: choose a part (--host, --unit, --since)"));
    }
    let chosen = paths.all.iter().filter(|(path, _)| {
        // The paths through a function show who calls it and what it calls.
        wanted.functions.is_empty()
            || path.iter().any(|name| wanted.functions.iter().any(|glob| glob.matches(name)))
    });
    let stacks = Stacks::of(chosen.map(|(path, sums)| {
        (path.iter().map(|name| &**name).collect(), sums.self_ns, sums.calls)
    }))?;
    let mut out = out.into_writer();
    let written = match args.folded {
        true => stacks.fold(&mut *out),
        false => {
            let drawing = Drawing {
                title: "fleet".to_owned(),
                subtitle: format!(
                    "{} of {}",
                    counted(read.rows, "row", "rows"),
                    counted(read.files, "file", "files")
                ),
                reversed: args.reversed,
                colours: HashMap::new(),
            };
            stacks.draw(drawing, &mut *out)
        }
    };
    match written {
        // A reader that went away (`| head`) has enough.
        Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(error.into()),
        Ok(()) => Ok(0),
    }
}
