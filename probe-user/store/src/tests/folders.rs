//! Tests which files of a folder are sent, and stores that are folders.

use super::{block_on, files, folder, put, shipper};
use crate::{arguments, destination::Destination, rounds::Ended, spool::Spool, told::Teller};
use object_store::memory::InMemory;
use std::{
    fs,
    os::unix::fs::symlink,
    sync::Arc,
    time::{Duration, SystemTime},
};

const WHOLE: &str = "functions/host=h/day=2026-11-30/unit=u/part-1-0a.parquet";

#[test]
fn a_folder_moves_to_a_store_of_files() {
    let (folder, all) =
        folder(&[("2026-11-29", 0), ("2026-11-30", 70_000), ("2026-11-30", 17 << 20)]);
    let disk = tempfile::tempdir().unwrap();
    let store = disk.path().join("store");
    fs::create_dir(&store).unwrap();
    let url = format!("file://{}", store.display());
    let (mut shipper, _phase) = shipper(folder.path(), Destination::open(&url, &[]).unwrap());
    assert_eq!(block_on(shipper.once()), Ended::AllSent);
    assert_eq!(files(&store), all.keys().cloned().collect::<Vec<_>>());
    assert!(all.iter().all(|(path, content)| fs::read(store.join(path)).unwrap() == *content));
    assert!(files(folder.path()).is_empty());
    // A store that is gone is not made anew: it may be a disk that is not mounted.
    put(folder.path(), WHOLE, b"x");
    fs::rename(&store, disk.path().join("unmounted")).unwrap();
    assert_eq!(block_on(shipper.once()), Ended::SomeWait);
    assert!(shipper.told().contains("failed there is no folder /"), "{}", shipper.told());
    assert!(files(folder.path()) == [WHOLE] && !store.exists());
    fs::create_dir(&store).unwrap();
    assert_eq!(block_on(shipper.once()), Ended::SomeWait);
    assert!(shipper.told().contains("is another folder than at the start"), "{}", shipper.told());
    assert!(files(folder.path()) == [WHOLE] && files(&store).is_empty());
    let (inside, outside) = (folder.path().join("functions"), tempfile::tempdir().unwrap());
    for (store, is_in) in [(folder.path(), true), (&inside, true), (outside.path(), false)] {
        let store = Destination::open(&format!("file://{}", store.display()), &[]).unwrap();
        assert_eq!(store.is_in(folder.path()), is_in);
    }
}

#[test]
fn only_whole_files_of_our_own_are_sent() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path();
    put(root, WHOLE, b"whole");
    let strangers = [
        "functions/host=h/day=2026-11-30/unit=u/part-2-0a.parquet.0123456789abcdef.part",
        "functions/host=h/day=2026-11-30/unit=u/notes.parquet",
        "functions/host=h/day=2026-11-30/unit=u/part-3.txt",
        "functions/host=h/day=2026-11-30/part-4-0a.parquet",
        "functions/host=other/day=2026-11-30/unit=u/part-5-0a.parquet",
        "Functions/host=h/day=2026-11-30/unit=u/part-6-0a.parquet",
        "functions/host=h/2026-11-30/unit=u/part-7-0a.parquet",
    ];
    strangers.iter().for_each(|path| put(root, path, b"strange"));
    let unit = root.join(WHOLE).parent().unwrap().to_owned();
    put(outside.path(), "unit=u/part-8-0a.parquet", b"secret");
    let secret = outside.path().join("unit=u/part-8-0a.parquet");
    symlink(&secret, unit.join("part-8-0a.parquet")).unwrap();
    fs::hard_link(&secret, unit.join("part-9-0a.parquet")).unwrap();
    symlink(outside.path().join("unit=u"), unit.with_file_name("unit=link")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, unit.join("part-10-0a.parquet"), 0o600.into()).unwrap();
    let spool = Spool { root: root.to_owned(), host: Some("h".to_owned()) };
    let found = spool.look().unwrap();
    assert_eq!(found.iter().map(|file| file.path()).collect::<Vec<_>>(), [WHOLE]);
    // It is another one by the time that it is opened.
    let opened = spool.file(&found[0]).unwrap().unwrap();
    fs::rename(root.join(WHOLE), unit.join("kept")).unwrap();
    fs::write(root.join(WHOLE), b"another").unwrap();
    opened.remove().unwrap();
    assert_eq!(fs::read(root.join(WHOLE)).unwrap(), b"another");
    fs::remove_file(root.join(WHOLE)).unwrap();
    assert!(spool.file(&found[0]).unwrap().is_none());
    let nowhere = Spool { root: root.join("nowhere"), host: None };
    assert_eq!(nowhere.look().unwrap(), []);
}

/// Nobody can remove a file from a folder that is immutable, not even root.
#[test]
fn a_file_that_could_not_be_removed_is_not_sent() {
    let (folder, all) = folder(&[("2026-11-29", 1), ("2026-11-30", 1)]);
    let kept = folder.path().join("functions/host=h%2F1/day=2026-11-29/unit=u.service");
    let change = |how: &str| {
        let done = std::process::Command::new("chattr").arg(how).arg(&kept).output();
        done.is_ok_and(|done| done.status.success())
    };
    if !change("+i") {
        eprintln!("skipped: no folder can be made immutable here");
        return;
    }
    let store = tempfile::tempdir().unwrap();
    let url = format!("file://{}", store.path().display());
    let (mut shipper, _phase) = shipper(folder.path(), Destination::open(&url, &[]).unwrap());
    let ended = block_on(shipper.once());
    assert!(change("-i"));
    assert_eq!(ended, Ended::SomeWait);
    assert!(shipper.told().contains("failed a file stays"), "{}", shipper.told());
    let paths: Vec<_> = all.into_keys().collect();
    assert_eq!(
        (files(folder.path()), files(store.path())),
        (vec![paths[0].clone()], vec![paths[1].clone()])
    );
}

#[test]
fn empty_folders_of_old_days_are_removed() {
    let (folder, _) = folder(&[("2026-11-01", 1), ("2026-11-30", 1)]);
    let store = Destination::of(Arc::new(InMemory::new()));
    let (mut shipper, _phase) = shipper(folder.path(), store);
    assert_eq!(block_on(shipper.once()), Ended::AllSent);
    let days = folder.path().join("functions/host=h%2F1");
    let old = SystemTime::now() - Duration::from_secs(3 * 86_400);
    for folder in ["day=2026-11-01/unit=u.service", "day=2026-11-01"] {
        fs::File::open(days.join(folder)).unwrap().set_modified(old).unwrap();
        block_on(shipper.once());
    }
    assert!(!days.join("day=2026-11-01").exists());
    assert!(days.join("day=2026-11-30/unit=u.service").exists(), "the daemon may write there now");
}

#[test]
fn addresses_and_settings_that_cannot_work_are_refused_without_their_values() {
    let refused = |url: &str, variables: &[(&str, &str)]| {
        let variables = variables.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        Destination::open(url, &variables.collect::<Vec<_>>()).map(drop).unwrap_err()
    };
    for url in ["s3://key:secret@bucket/x", "az://container/x?sig=secret", "s3://bucket#secret"] {
        let error = refused(url, &[]);
        assert!(error.contains("environment") && !error.contains("secret"), "{error}");
    }
    for url in ["ftp://host/x", "memory:///x", "https://host/x"] {
        assert!(refused(url, &[]).contains("none of s3"), "{url}");
    }
    assert!(refused("file:///no/such/folder", &[]).contains("no/such/folder"));
    let secret = [("AWS_ALLOW_HTTP", "verysecret")];
    let error = refused("s3://bucket", &secret);
    assert!(!error.contains("verysecret") && error.contains('…'), "{error}");
    let _ = refused("az://container", &[]);
}

#[test]
fn what_is_told_is_one_harmless_line() {
    let mut teller = Teller(Vec::new());
    teller.failed("a\nb\u{1b}[2Jé");
    teller.failed(&"é".repeat(1_000));
    let told = String::from_utf8(teller.0).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, "failed a\\nb\\u{1b}[2J\\u{e9}"));
    assert!(lines[1].len() < 700 && told.is_ascii());
}

#[test]
fn the_command_line_is_checked() {
    let parsed = |words: &str| arguments::parse(words.split_whitespace().map(str::to_owned));
    let Ok(arguments::Asked::Ship(all)) = parsed("ship --once /a s3://b --host h") else {
        panic!()
    };
    assert_eq!((all.once, all.until_eof, all.host.as_deref()), (true, false, Some("h")));
    assert!(matches!(parsed("ship --help"), Ok(arguments::Asked::Text(_))));
    for wrong in [
        "",
        "ship",
        "ship /a",
        "send /a s3://b",
        "ship /a s3://b c",
        "ship /a s3://b --host",
        "ship /a s3://b --twice",
    ] {
        assert!(parsed(wrong).is_err(), "{wrong}");
    }
}
