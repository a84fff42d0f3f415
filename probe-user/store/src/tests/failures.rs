//! Stores that fail in the ways of networks and servers.

use super::{
    BUCKET, block_on, files, folder, put,
    server::{Fault, Server},
    shipper, until_sent,
};
use crate::{destination::Destination, phase::Phase, rounds::Ended};
use std::{collections::BTreeMap, fs, path::Path};

const LARGE: usize = (20 << 20) + 1;

fn open(server: &Server) -> Destination {
    Destination::open(BUCKET, &server.variables()).unwrap()
}

/// Every file is in the folder, or whole in the store, at any time.
fn nothing_is_lost(folder: &Path, server: &Server, all: &BTreeMap<String, Vec<u8>>) {
    let objects = server.objects();
    for (path, content) in all {
        let waits = folder.join(path).exists();
        assert!(waits || objects.get(path) == Some(content), "{path}");
    }
    assert!(objects.iter().all(|(path, bytes)| all[path] == *bytes), "an object in part");
}

#[test]
fn what_fails_now_and_then_is_sent_once_and_whole() {
    let days = ["2026-11-28", "2026-11-29", "2026-11-30"];
    let wanted: Vec<_> = (0..9).map(|at| (days[at % 3], 100 * at)).collect();
    let (folder, all) = folder(&wanted);
    let server = Server::start(|_, _, number| match number % 11 {
        0..3 => Fault::Status(500, "<Error><Code>InternalError</Code></Error>".to_owned()),
        5 => Fault::Cut,
        7 | 9 if number < 50 => Fault::Forgotten,
        _ => Fault::None,
    });
    let (mut shipper, _phase) = shipper(folder.path(), open(&server));
    let check = || nothing_is_lost(folder.path(), &server, &all);
    block_on(until_sent(&mut shipper, 100, check));
    assert_eq!((server.objects(), files(folder.path())), (all, Vec::<String>::new()));
    let told = shipper.told();
    assert!(told.contains("failed "), "{told}");
    assert_eq!(told.matches("uploaded ").count(), 9, "{told}");
    assert!(told.ends_with("waiting 0 0\n"), "{told}");
}

#[test]
fn wrong_credentials_are_told_without_any_of_them() {
    let (folder, all) = folder(&[("2026-11-30", 100)]);
    let body = "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIDEXAMPLE</AWSAccessKeyId>\
        <StringToSign>verysecret\u{1b}[2J</StringToSign></Error>";
    let server = Server::start(move |_, _, _| Fault::Status(403, body.to_owned()));
    let (mut shipper, _phase) = shipper(folder.path(), open(&server));
    assert_eq!(block_on(shipper.once()), Ended::SomeWait);
    let told = "waiting 1 100\nfailed the store denies it (HTTP 403, SignatureDoesNotMatch)\n";
    assert_eq!(shipper.told(), told);
    assert_eq!(files(folder.path()), all.into_keys().collect::<Vec<_>>());
}

#[test]
fn a_store_that_is_away_or_silent_is_told_as_that() {
    let (folder, _) = folder(&[("2026-11-30", 100)]);
    let silent = Server::start(|_, _, _| Fault::Silent);
    let mut away = silent.variables();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    away[0].1 = format!("http://{port}");
    let away = Destination::open(BUCKET, &away).unwrap();
    for (destination, why) in [
        (open(&silent), "failed the store does not answer in time"),
        (away, "failed the store cannot be reached (Connection refused (os error 111))"),
    ] {
        let (mut shipper, _phase) = shipper(folder.path(), destination);
        assert_eq!(block_on(shipper.once()), Ended::SomeWait);
        assert!(shipper.told().contains(why), "{}", shipper.told());
    }
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn a_file_stays_until_the_store_shows_it() {
    // What the store once took is not sent again, unless the store says that it is not there.
    for (fault, why, times) in [
        (Fault::Status(500, String::new()), "failed the store has an error (HTTP 500)", 1),
        (Fault::Status(403, String::new()), "failed the store denies it (HTTP 403)", 1),
        (Fault::Status(404, String::new()), "failed the store says that there is no such thing", 3),
        (Fault::OtherSize, "failed the store has another object: its size differs", 1),
        (Fault::OtherTag, "failed the store has another object: its tag differs", 1),
    ] {
        let (folder, all) = folder(&[("2026-11-30", 100)]);
        let server = Server::start(move |method, _, _| match method {
            "HEAD" => fault.clone(),
            _ => Fault::None,
        });
        let (mut shipper, _phase) = shipper(folder.path(), open(&server));
        for _ in 0..3 {
            assert_eq!(block_on(shipper.once()), Ended::SomeWait);
        }
        assert_eq!(shipper.told().matches(why).count(), 3, "{}", shipper.told());
        assert_eq!((server.objects(), server.sent("PUT")), (all, times), "{why}");
        assert_eq!(files(folder.path()).len(), 1);
    }
}

#[test]
fn a_large_file_comes_in_parts_and_none_stays_of_one_that_fails() {
    let (folder, all) = folder(&[("2026-11-30", LARGE)]);
    let server = Server::start(|method, target, number| {
        match method == "PUT" && target.contains("partNumber=2") && number < 6 {
            true => Fault::Cut,
            false => Fault::None,
        }
    });
    // To add up the parts takes this server long.
    let mut variables = server.variables();
    variables.retain(|(name, _)| name != "AWS_TIMEOUT");
    let destination = Destination::open(BUCKET, &variables).unwrap();
    let (mut shipper, _phase) = shipper(folder.path(), destination);
    assert_eq!(block_on(shipper.once()), Ended::SomeWait);
    assert!(shipper.told().contains("failed the connection was cut"), "{}", shipper.told());
    assert_eq!((server.objects().len(), files(folder.path()).len()), (0, 1));
    assert_eq!((server.sent("DELETE"), server.kept.lock().unwrap().uploads.len()), (1, 0));
    block_on(until_sent(&mut shipper, 3, || {}));
    assert!(server.objects() == all && files(folder.path()).is_empty());
    assert!(server.kept.lock().unwrap().uploads.is_empty());
}

#[test]
fn an_upload_is_given_up_when_the_time_is_over() {
    let (folder, _) = folder(&[("2026-11-30", LARGE)]);
    let (reached, part) = std::sync::mpsc::channel();
    let server = Server::start(move |_, target, _| match target.contains("partNumber=2") {
        true => {
            let _ = reached.send(());
            Fault::Silent
        }
        false => Fault::None,
    });
    let mut variables = server.variables();
    variables.retain(|(name, _)| name != "AWS_TIMEOUT");
    let destination = Destination::open(BUCKET, &variables).unwrap();
    let (mut shipper, phase) = shipper(folder.path(), destination);
    let watcher = std::thread::spawn(move || {
        part.recv().unwrap();
        phase.send_replace(Phase::GiveUp);
        phase
    });
    assert_eq!(block_on(shipper.run()), Ended::SomeWait);
    drop(watcher.join().unwrap());
    assert!(shipper.told().contains("failed there is no more time"), "{}", shipper.told());
    assert!(server.kept.lock().unwrap().uploads.is_empty());
    assert_eq!((server.objects().len(), files(folder.path()).len()), (0, 1));
}

#[test]
fn an_answer_without_an_end_is_not_read_to_its_end() {
    let (folder, _) = folder(&[("2026-11-30", 100)]);
    let server = Server::start(|_, _, _| Fault::Endless);
    let mut variables = server.variables();
    variables.retain(|(name, _)| name != "AWS_TIMEOUT");
    let destination = Destination::open(BUCKET, &variables).unwrap();
    let (mut shipper, _phase) = shipper(folder.path(), destination);
    assert_eq!(block_on(shipper.once()), Ended::SomeWait);
    // What it did not take is in buffers of the kernel.
    let taken = server.kept.lock().unwrap().endless;
    assert!(taken < 64 << 20, "{taken}");
    assert_eq!(files(folder.path()).len(), 1);
}

#[test]
fn a_file_that_the_store_never_takes_keeps_up_no_other() {
    let days = ["2026-11-27", "2026-11-28", "2026-11-29", "2026-11-30"];
    let (folder, _) = folder(&days.map(|day| (day, 10)));
    let server = Server::start(|_, target, _| match target.contains("2026-11-28") {
        true => Fault::Status(400, "<Error><Code>KeyTooLongError</Code></Error>".to_owned()),
        false => Fault::None,
    });
    let (mut shipper, phase) = shipper(folder.path(), open(&server));
    // One look at the folder once, as of cron, sends all others.
    assert_eq!(block_on(shipper.once()), Ended::SomeWait);
    assert_eq!((server.objects().len(), files(folder.path()).len()), (3, 1));
    assert!(shipper.told().contains("(HTTP 400, KeyTooLongError)"), "{}", shipper.told());
    // What comes meanwhile is sent at the end.
    let late = "paths/host=h%2F1/day=2026-12-01/unit=u/part-9-00.parquet";
    put(folder.path(), late, b"late");
    phase.send_replace(Phase::Finish);
    assert_eq!(block_on(shipper.run()), Ended::SomeWait);
    assert_eq!(server.objects().get(late).map(Vec::as_slice), Some(&b"late"[..]));
    fs::remove_file(folder.path().join(&files(folder.path())[0])).unwrap();
    assert_eq!(block_on(shipper.run()), Ended::AllSent);
}
