//! `ctrace fleet compact`: makes few files of many.

use super::Failure;
use crate::{
    cli::FleetCompactArgs,
    host_name::host_name,
    tables::compact::{Due, compact, due, today},
    ui::{self, text::units::counted},
};
use ctrace_core::glob::Glob;
use std::{collections::BTreeMap, io, path::PathBuf};

/// The sum of all passes.
#[derive(Default)]
struct Sum {
    before: u64,
    after: u64,
    rows: u64,
    damaged: BTreeMap<PathBuf, String>,
}

pub(super) fn main(args: &FleetCompactArgs) -> Result<u8, Failure> {
    super::scan::check(&args.folder)?;
    let (hosts, own) =
        (args.hosts.iter().map(|text| Glob::new(text)).collect::<Vec<_>>(), host_name());
    let admits = |name: &str| match &*hosts {
        [] => name == own,
        globs => globs.iter().any(|glob| glob.matches(name)),
    };
    let (mut sum, mut failed) = (Sum::default(), 0);
    for folder in due(&args.folder, admits, today()) {
        let path = folder.path.clone();
        // Others may be as they should.
        if let Err(error) = sum.add(folder) {
            ui::say(&format!("cannot put the files of {} together: {error}", path.display()));
            failed += 1;
        }
    }
    let Sum { before, after, rows, damaged } = sum;
    for (file, why) in &damaged {
        ui::say(&format!("{} {why}; it stays as it is", file.display()));
    }
    let (before, after) = (counted(before, "file", "files"), counted(after, "file", "files"));
    ui::say(&format!("{before} became {after}, with {}", counted(rows, "row", "rows")));
    match failed {
        0 => Ok(u8::from(!damaged.is_empty())),
        _ => {
            let folders = counted(failed, "folder", "folders");
            Err(anyhow::anyhow!("{folders} could not be compacted").into())
        }
    }
}

impl Sum {
    /// Does a folder, pass by pass, until nothing is left to do.
    fn add(&mut self, mut folder: Due) -> io::Result<()> {
        let mut is_new = false;
        loop {
            let outcome = compact(&folder)?;
            self.before += outcome.before;
            self.after += outcome.after;
            self.rows += outcome.rows;
            self.damaged.extend(outcome.damaged);
            is_new |= outcome.after > 0;
            folder.after = outcome.next;
            if folder.after.is_none() && !std::mem::take(&mut is_new) {
                return Ok(());
            }
        }
    }
}
