//! Sends files as Google's servers want them. They speak to a client much as those of S3 do.

use super::{
    block_on, files, folder,
    server::{Fault, Server},
    shipper, until_sent,
};
use crate::{destination::Destination, rounds::Ended};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

const BUCKET: &str = "gs://bucket/a/prefix";

fn open(server: &Server) -> Destination {
    Destination::open(BUCKET, &server.variables_of_google()).unwrap()
}

#[test]
fn small_and_large_files_are_sent_once_and_whole() {
    let (folder, all) = folder(&[("2026-11-29", 0), ("2026-11-30", 100), ("2026-11-30", 17 << 20)]);
    // The second part is cut off once.
    let is_cut = Arc::new(AtomicBool::new(false));
    let server = Server::start({
        let is_cut = Arc::clone(&is_cut);
        move |method, target, _| {
            let is_second = method == "PUT" && target.contains("partNumber=2");
            match is_second && !is_cut.swap(true, Ordering::Relaxed) {
                true => Fault::Cut,
                false => Fault::None,
            }
        }
    });
    let mut variables = server.variables_of_google();
    // To add up the parts takes this server long.
    variables.retain(|(name, _)| *name != "GOOGLE_TIMEOUT");
    let store = Destination::open(BUCKET, &variables).unwrap();
    let (mut shipper, _phase) = shipper(folder.path(), store);
    block_on(until_sent(&mut shipper, 5, || {}));
    assert!(is_cut.load(Ordering::Relaxed), "no part was cut off");
    assert!(server.objects() == all && files(folder.path()).is_empty(), "{}", shipper.told());
    assert!(server.kept.lock().unwrap().uploads.is_empty(), "parts are left");
    assert_eq!(shipper.told().matches("uploaded ").count(), 3, "{}", shipper.told());
}

#[test]
fn a_denial_is_told_and_the_file_stays() {
    let (folder, all) = folder(&[("2026-11-30", 100)]);
    let body = "<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access denied.</Message>\
        <Details>a@b.iam.gserviceaccount.com has no storage.objects.create access</Details></Error>";
    let server = Server::start(move |_, _, _| Fault::Status(403, body.to_owned()));
    let (mut shipper, _phase) = shipper(folder.path(), open(&server));
    assert_eq!(block_on(shipper.once()), Ended::SomeWait);
    let told = "waiting 1 100\nfailed the store denies it (HTTP 403, AccessDenied)\n";
    assert_eq!(shipper.told(), told);
    assert_eq!(files(folder.path()), all.into_keys().collect::<Vec<_>>());
}
