//! Finds files of other names of this machine. A host that was renamed leaves them, and nobody sends
//! them. In a folder that several machines share, they are those of the others.

use super::{HOST, Wanted};
use ctrace_core::fleet::{Table, partition};
use std::{collections::BTreeSet, fs, path::Path};

/// Returns the other hosts of which files wait in the folder.
pub(super) fn find(wanted: &Wanted) -> BTreeSet<String> {
    let mut hosts = BTreeSet::new();
    for table in Table::ALL {
        for (name, path) in folders(&wanted.folder.join(table.name())) {
            let host = name.strip_prefix(HOST).and_then(|rest| rest.strip_prefix('='));
            let Some(host) = host.filter(|host| *host != wanted.host) else { continue };
            let units = folders(&path).flat_map(|(_, day)| folders(&day));
            if units.flat_map(|(_, unit)| fs::read_dir(unit)).flatten().flatten().any(is_table) {
                hosts.insert(partition::value(HOST, &name).unwrap_or_else(|| host.to_owned()));
            }
        }
    }
    hosts
}

fn is_table(entry: fs::DirEntry) -> bool {
    entry.file_name().to_str().is_some_and(|name| name.ends_with(".parquet"))
}

/// Returns the folders in a folder. Links are none.
fn folders(path: &Path) -> impl Iterator<Item = (String, std::path::PathBuf)> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_which_files_wait_are_found() {
        let root = tempfile::tempdir().unwrap();
        for (host, file) in [("h", true), ("old%2Fname", true), ("empty", false)] {
            let unit = root.path().join(format!("functions/host={host}/day=2026-11-30/unit=u"));
            fs::create_dir_all(&unit).unwrap();
            if file {
                fs::write(unit.join("part-1-0a.parquet"), "x").unwrap();
            }
        }
        let (folder, store) = (root.path().to_owned(), "s3://bucket".to_owned());
        let wanted = Wanted { folder, host: "h".to_owned(), store };
        assert_eq!(find(&wanted), BTreeSet::from(["old/name".to_owned()]));
    }
}
