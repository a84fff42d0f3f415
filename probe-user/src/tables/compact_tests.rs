//! Folders of finished days: few files, the same rows, whatever was there before.

use super::*;
use crate::tables::samples;
use ctrace_core::fleet::{Wanted, encode, partition::Partition};
use std::fs;

const DAY: i64 = 20_785;

struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { root: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, host: &str, day: i64) -> PathBuf {
        let (host, unit) = (host.to_owned(), "web.service".to_owned());
        let place = Partition { table: Table::Targets, host, day, unit };
        let path = self.root.path().join(place.folders().iter().collect::<PathBuf>());
        fs::create_dir_all(&path).expect("a folder");
        path
    }

    fn due(&self) -> Vec<Due> {
        due(self.root.path(), |host| host == "own", DAY + 1)
    }
}

/// Writes a file as a daemon would, with a row for each number.
fn write(folder: &Path, first: i64, rows: &[u64]) -> PathBuf {
    let rows: Vec<_> = rows.iter().map(|calls| samples::target(first, *calls)).collect();
    let path = folder.join(format!("part-{first}-0000000a.parquet"));
    fs::write(&path, encode::targets(&rows).expect("a file")).expect("written");
    path
}

fn names(folder: &Path) -> Vec<String> {
    let names = folder.read_dir().expect("a folder").flatten();
    let mut names: Vec<String> =
        names.map(|entry| entry.file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

/// Returns the numbers of all rows of whole files.
fn rows(folder: &Path) -> Vec<u64> {
    let mut all = Vec::new();
    for name in names(folder).iter().filter(|name| is_ours(name)) {
        let Ok(part) = Part::open(fs::read(folder.join(name)).expect("a file")) else { continue };
        for group in 0..part.groups() {
            part.targets(group, &Wanted::default(), |row| all.push(row.calls)).expect("rows");
        }
    }
    all.sort_unstable();
    all
}

#[test]
fn a_finished_day_of_this_machine_becomes_one_file() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    for first in 0..30_u64 {
        write(&own, first as i64, &[first, 100 + first]);
    }
    let others = [folder.path("other", DAY), folder.path("own", DAY + 1)];
    others.iter().for_each(|folder| (0..2).for_each(|first| drop(write(folder, first, &[1]))));
    fs::write(own.join("notes.txt"), "mine").expect("written");
    let (before, due) = (rows(&own), folder.due());
    assert_eq!(due.iter().map(|due| (&due.path, due.day)).collect::<Vec<_>>(), [(&own, DAY)]);
    let outcome = compact(&due[0]).expect("compacted");
    assert_eq!((outcome.before, outcome.after, outcome.rows), (30, 1, 60));
    let left = names(&own);
    assert!(left.len() == 2 && left[1].starts_with("part-0-"), "{left:?}");
    assert!(left[1].ends_with("-of-30.parquet") && left[0] == "notes.txt", "{left:?}");
    assert_eq!(rows(&own), before);
    assert!(folder.due().is_empty(), "nothing is left to do");
    assert!(others.iter().all(|folder| names(folder).len() == 2));
}

#[test]
fn late_rows_join_the_others() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    (0..3).for_each(|first| drop(write(&own, first, &[1])));
    compact(&folder.due()[0]).expect("compacted");
    write(&own, 9, &[2]);
    compact(&folder.due()[0]).expect("compacted");
    assert_eq!((rows(&own), names(&own).len()), (vec![1, 1, 1, 2], 1));
}

/// Whatever a crash left of the files for which another stands is removed, and counts no more.
#[test]
fn files_that_a_crash_left_do_not_come_back() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    let files: Vec<_> = (0..3).map(|first| write(&own, first, &[first as u64])).collect();
    let contents: Vec<_> = files.iter().map(|file| fs::read(file).expect("a file")).collect();
    compact(&folder.due()[0]).expect("compacted");
    files[1..]
        .iter()
        .zip(&contents[1..])
        .for_each(|(file, old)| fs::write(file, old).expect("written"));
    assert_eq!(rows(&own), [0, 1, 1, 2, 2], "other readers count what a crash left");
    let outcome = compact(&folder.due()[0]).expect("compacted");
    assert_eq!((outcome.before, rows(&own)), (0, vec![0, 1, 2]));
}

/// A half-written file is no file, and what cannot be read is told and stays.
#[test]
fn damaged_files_stay_and_are_told() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    (0..3).for_each(|first| drop(write(&own, first, &[first as u64])));
    let half = own.join("part-0-0000000b.parquet.0123456789abcdef.part");
    fs::write(&half, "PAR1 half").expect("written");
    let damaged = write(&own, 7, &[7]);
    let content = fs::read(&damaged).expect("a file");
    fs::write(&damaged, &content[..content.len() / 2]).expect("written");
    let outcome = compact(&folder.due()[0]).expect("compacted");
    assert_eq!((outcome.before, outcome.damaged.len()), (3, 1));
    assert_eq!(outcome.damaged[0].0, damaged);
    assert_eq!(fs::read(&damaged).expect("a file"), content[..content.len() / 2]);
    assert!(half.exists() && rows(&own) == [0, 1, 2], "{:?}", names(&own));
}

/// A file may claim to stand for anything, but only files of ours go for it.
#[test]
fn nothing_but_tables_is_removed() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    let part = Part::open(fs::read(write(&own, 1, &[1])).expect("a file")).expect("a file");
    let claims = ["notes.txt", "../other.txt", "part-5-0000000a.parquet"].map(str::to_owned);
    let liar = Rows::read(&part).expect("rows").encode(Table::Targets, &claims).expect("a file");
    fs::write(own.join(compacted_name(2, 1, 3)), liar).expect("written");
    fs::write(own.join("notes.txt"), "mine").expect("written");
    let other = own.parent().expect("a folder").join("other.txt");
    fs::write(&other, "mine").expect("written");
    compact(&folder.due()[0]).expect("compacted");
    assert!(own.join("notes.txt").exists() && other.exists());
    assert_eq!(rows(&own), [1, 1]);
}

/// One process at a time.
#[test]
fn a_folder_that_another_works_on_is_left_alone() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    (0..2).for_each(|first| drop(write(&own, first, &[1])));
    let lock = File::create(own.join(LOCK)).expect("a file");
    flock(&lock, FlockOperation::LockExclusive).expect("locked");
    assert_eq!(compact(&folder.due()[0]).expect("no error").before, 0);
    drop(lock);
    assert_eq!(compact(&folder.due()[0]).expect("compacted").before, 2);
    assert_eq!(names(&own).len(), 1, "the lock is gone");
}

/// Writes a file that stands for these, with the rows of them.
fn write_compacted(folder: &Path, random: u32, files: &[&PathBuf]) -> PathBuf {
    let mut all: Option<Rows> = None;
    for file in files {
        let part = Part::open(fs::read(file).expect("a file")).expect("a file");
        let rows = Rows::read(&part).expect("rows");
        match &mut all {
            Some(all) => assert!(all.append(rows).expect("room").is_none()),
            None => all = Some(rows),
        }
    }
    let name = |file: &&PathBuf| file.file_name().expect("a name").to_str().map(str::to_owned);
    let stood: Vec<String> = files.iter().filter_map(name).collect();
    let path = folder.join(compacted_name(0, random, files.len()));
    let content = all.expect("files").encode(Table::Targets, &stood).expect("a file");
    fs::write(&path, content).expect("written");
    path
}

/// Two processes have worked on a folder at one time, and have not removed all yet.
#[test]
fn of_two_files_with_the_same_rows_one_stays() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    let files: Vec<_> = (0..3).map(|first| write(&own, first, &[first as u64])).collect();
    let all: Vec<&PathBuf> = files.iter().collect();
    write_compacted(&own, 1, &all);
    write_compacted(&own, 2, &all);
    // This one has some of the rows only.
    write_compacted(&own, 3, &all[..2]);
    fs::remove_file(&files[0]).expect("removed");
    compact(&folder.due()[0]).expect("compacted");
    assert_eq!((rows(&own), names(&own).len()), (vec![0, 1, 2], 1), "{:?}", names(&own));
}

/// Rows would be missing with either.
#[test]
fn two_files_with_some_rows_in_common_stay_and_are_told() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    let files: Vec<_> = (0..3).map(|first| write(&own, first, &[first as u64])).collect();
    let both = [
        write_compacted(&own, 1, &[&files[0], &files[1]]),
        write_compacted(&own, 2, &[&files[1], &files[2]]),
    ];
    let before = names(&own);
    let outcome = compact(&folder.due()[0]).expect("no error");
    let told: Vec<_> = outcome.damaged.iter().map(|(file, _)| file.clone()).collect();
    assert_eq!((told, outcome.before), (both.to_vec(), 0));
    assert_eq!(names(&own), before);
}

/// The word of a file that is damaged removes nothing.
#[test]
fn files_stay_if_the_one_that_stands_for_them_cannot_be_read() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    let files: Vec<_> = (0..2).map(|first| write(&own, first, &[first as u64])).collect();
    let whole = write_compacted(&own, 1, &files.iter().collect::<Vec<_>>());
    let mut content = fs::read(&whole).expect("a file");
    // The end of the file, which has the names, is as it was.
    content[4..40].fill(0xff);
    fs::write(&whole, &content).expect("written");
    let before = names(&own);
    let outcome = compact(&folder.due()[0]).expect("no error");
    assert_eq!(outcome.damaged.first().map(|(file, _)| file), Some(&whole));
    assert_eq!((names(&own), outcome.before), (before, 0));
}

/// A crash between the new file and the removal of the old ones, where all of them stand for others.
#[test]
fn what_is_left_of_an_earlier_compaction_is_removed() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    let files: Vec<_> = (0..2).map(|first| write(&own, first, &[first as u64])).collect();
    let first = write_compacted(&own, 1, &files.iter().collect::<Vec<_>>());
    files.iter().for_each(|file| fs::remove_file(file).expect("removed"));
    let late = write(&own, 9, &[9]);
    write_compacted(&own, 2, &[&first, &late]);
    fs::remove_file(&late).expect("removed");
    assert_eq!(rows(&own), [0, 0, 1, 1, 9], "other readers count what a crash left");
    compact(&folder.due()[0]).expect("compacted");
    assert_eq!((rows(&own), folder.due().len()), (vec![0, 1, 9], 0));
}

/// If the disk may not have the new name, the old files stay, and the new one does not.
#[test]
fn an_error_leaves_the_folder_as_it_was() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    (0..3).for_each(|first| drop(write(&own, first, &[first as u64])));
    let before = names(&own);
    let due = folder.due().remove(0);
    compact_with(&due, |_| Err(Errno::IO.into())).expect_err("an error");
    assert_eq!(names(&own), before);
    // File systems that cannot write names at once.
    let outcome = compact_with(&due, |_| Err(Errno::INVAL.into())).expect("compacted");
    assert_eq!((outcome.before, rows(&own)), (3, vec![0, 1, 2]));
}

/// Whoever waits for a pass does not wait for thousands of files.
#[test]
fn a_pass_looks_at_some_files_and_the_next_one_goes_on() {
    let folder = Folder::new();
    let own = folder.path("own", DAY);
    let many = AT_ONCE as i64 + 10;
    (0..many).for_each(|first| drop(write(&own, first, &[first as u64])));
    let mut due = folder.due().remove(0);
    let outcome = compact(&due).expect("compacted");
    assert_eq!((outcome.before, outcome.after), (AT_ONCE as u64, 1));
    due.after = outcome.next;
    let outcome = compact(&due).expect("compacted");
    assert_eq!((outcome.before, outcome.next), (10, None));
    let last = compact(&folder.due()[0]).expect("compacted");
    assert_eq!((last.before, names(&own).len()), (2, 1));
    assert_eq!(rows(&own), (0..many as u64).collect::<Vec<_>>());
}

/// A name of several lines would be several names in a file that stands for it.
#[test]
fn names_of_tables_have_no_strange_signs() {
    assert!(is_ours("part--12-000000ab-of-3.parquet"));
    for name in ["part-1-a\nb.parquet", "part-1-\u{e9}.parquet", "part-1-a b.parquet"] {
        assert!(!is_ours(name), "{name:?}");
    }
}
