//! Sends files as Google's servers want them. They speak to a client much as those of S3 do.

use super::{
    block_on, files, folder,
    server::{Fault, Server},
    shipper, until_sent,
};
use crate::{destination::Destination, rounds::Ended};

const BUCKET: &str = "gs://bucket/a/prefix";

fn open(server: &Server) -> Destination {
    Destination::open(BUCKET, &server.variables_of_google()).unwrap()
}

#[test]
fn small_and_large_files_are_sent_once_and_whole() {
    let (folder, all) = folder(&[("2026-11-29", 0), ("2026-11-30", 100), ("2026-11-30", 17 << 20)]);
    // The second part is cut off once.
    let server = Server::start(|method, target, number| {
        match method == "PUT" && target.contains("partNumber=2") && number < 9 {
            true => Fault::Cut,
            false => Fault::None,
        }
    });
    let (mut shipper, _phase) = shipper(folder.path(), open(&server));
    block_on(until_sent(&mut shipper, 5, || {}));
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
