//! No row counts twice, whatever files are in a folder.

use super::*;
use crate::tables::samples;
use ctrace_core::{
    fleet::{
        compact::{Rows, compacted_name},
        encode,
    },
    recording::replay::start_threads,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;

/// Makes a folder of a unit, with files of one row each.
fn folder(root: &Path) -> PathBuf {
    let folder = root.join("targets/host=h/day=2026-11-28/unit=u");
    fs::create_dir_all(&folder).expect("a folder");
    for name in ["part-1-a.parquet", "part-2-b.parquet", "part-3-c.parquet"] {
        fs::write(folder.join(name), content()).expect("written");
    }
    folder
}

fn content() -> Vec<u8> {
    encode::targets(&[samples::target(1, 1)]).expect("a file")
}

/// Writes a file with a row that says to stand for these.
fn compacted(folder: &Path, random: u32, files: &[&str]) -> String {
    let rows = Rows::read(&Part::open(content()).expect("a file")).expect("rows");
    let names: Vec<String> = files.iter().map(|name| (*name).to_owned()).collect();
    let name = compacted_name(1, random, files.len());
    let content = rows.encode(Table::Targets, &names).expect("a file");
    fs::write(folder.join(&name), content).expect("written");
    name
}

/// Returns the names of the files that count, and of those that are damaged.
fn read(root: &Path) -> (Vec<String>, Vec<String>) {
    start_threads().expect("threads");
    let files = find(root, Table::Targets, &Wanted::default()).expect("files");
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let count = |_: &mut (), _: &Found, part: &Part, _: usize| Ok(part.rows());
    let ((), read) = each(&files, || (), count, |(), ()| ());
    let damaged: Vec<String> = read.damaged.iter().map(|(path, _)| name(path)).collect();
    let files = files.iter().map(|file| name(&file.path));
    (files.filter(|name| !damaged.contains(name)).collect(), damaged)
}

#[test]
fn of_two_files_with_the_same_names_one_counts() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = folder(root.path());
    let first = compacted(&folder, 1, &["part-1-a.parquet", "part-2-b.parquet"]);
    compacted(&folder, 2, &["part-2-b.parquet", "part-1-a.parquet"]);
    let counted = [first, "part-3-c.parquet".to_owned()].to_vec();
    assert_eq!(read(root.path()), (counted, vec![]));
}

#[test]
fn two_files_with_some_of_the_same_names_are_left_out() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = folder(root.path());
    let both = [
        compacted(&folder, 1, &["part-1-a.parquet", "part-2-b.parquet"]),
        compacted(&folder, 2, &["part-2-b.parquet", "part-3-c.parquet"]),
    ];
    let counted = ["part-1-a.parquet", "part-2-b.parquet", "part-3-c.parquet"];
    assert_eq!(read(root.path()), (counted.map(str::to_owned).to_vec(), both.to_vec()));
}

/// A pipe that nobody writes would be waited for.
#[test]
fn what_is_no_file_is_not_opened() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = folder(root.path());
    let name = compacted_name(1, 9, 2);
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, folder.join(&name), FileType::Fifo, mode, 0).expect("a pipe");
    assert_eq!(read(root.path()).1, [name]);
}
