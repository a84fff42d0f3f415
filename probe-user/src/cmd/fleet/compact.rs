//! `ctrace fleet compact`: makes few files of many.

use super::Failure;
use crate::{
    cli::FleetCompactArgs,
    tables::{
        compact::{compact, due, today},
        own_name,
    },
    ui::{self, text::units::counted},
};
use anyhow::Context;
use ctrace_core::glob::Glob;

pub(super) fn main(args: &FleetCompactArgs) -> Result<u8, Failure> {
    super::scan::check(&args.folder)?;
    let (hosts, own) =
        (args.hosts.iter().map(|text| Glob::new(text)).collect::<Vec<_>>(), own_name());
    let admits = |name: &str| match &*hosts {
        [] => name == own,
        globs => globs.iter().any(|glob| glob.matches(name)),
    };
    let (mut before, mut after, mut rows, mut damaged) = (0, 0, 0, false);
    for folder in due(&args.folder, admits, today()) {
        let outcome = compact(&folder).with_context(|| {
            format!("cannot put the files of {} together", folder.path.display())
        })?;
        before += outcome.before;
        after += outcome.after;
        rows += outcome.rows;
        for (file, why) in &outcome.damaged {
            ui::say(&format!("{} {why}; it stays as it is", file.display()));
            damaged = true;
        }
    }
    let (before, after) = (counted(before, "file", "files"), counted(after, "file", "files"));
    ui::say(&format!("{before} became {after}, with {}", counted(rows, "row", "rows")));
    Ok(u8::from(damaged))
}
