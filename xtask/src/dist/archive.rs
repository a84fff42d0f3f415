//! Packs the archive: a folder with the layout of a prefix, so that unpacking it in /usr/local
//! installs it.

use super::tree::{self, Layout};
use super::{Programs, Way, archive_name, pack};
use anyhow::Result;
use std::path::Path;

const LAYOUT: Layout = Layout { prefix: "/usr/local", zsh: "share/zsh/site-functions" };

pub(super) fn make(
    programs: &Programs,
    licences: &str,
    way: &Way<'_>,
    work: &Path,
    folder: &Path,
) -> Result<()> {
    let name = archive_name();
    tree::lay_out(programs, licences, &LAYOUT, &work.join(&name))?;
    pack(work, &name, way, &folder.join(format!("{name}.tar.gz")))
}
