//! Sends files to stores that fail: nothing is lost, nothing is there twice, and a file stays until it
//! is seen in the store.

mod failures;
mod folders;
mod google;
mod server;

use crate::{
    destination::Destination,
    phase::Phase,
    rounds::{Ended, Pauses, Shipper},
    spool::Spool,
    told::Teller,
};
use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    time::Duration,
};
use tokio::sync::watch;

const BUCKET: &str = "s3://bucket/a/prefix";
const QUICK: Pauses = Pauses {
    looks: Duration::from_millis(5),
    first: Duration::from_millis(5),
    longest: Duration::from_millis(20),
};

/// Makes a folder of files with these days and sizes. Returns their contents by their paths.
fn folder(files: &[(&str, usize)]) -> (tempfile::TempDir, BTreeMap<String, Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let mut all = BTreeMap::new();
    for (number, (day, size)) in files.iter().enumerate() {
        let path =
            format!("functions/host=h%2F1/day={day}/unit=u.service/part-{number}-0a.parquet");
        let content: Vec<u8> = (0..*size).map(|at| ((at * (number + 3)) >> 3) as u8).collect();
        put(folder.path(), &path, &content);
        all.insert(path, content);
    }
    (folder, all)
}

fn put(folder: &Path, path: &str, content: &[u8]) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Returns the paths of all files below a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => walk(&path, root, found),
                false => found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()),
            }
        }
    }
    let mut found = Vec::new();
    walk(folder, folder, &mut found);
    found.sort();
    found
}

fn shipper(folder: &Path, destination: Destination) -> (Shipper<Vec<u8>>, watch::Sender<Phase>) {
    let (tell, phase) = watch::channel(Phase::Run);
    let spool = Spool { root: folder.to_owned(), host: None };
    let (teller, failures, sent) = (Teller(Vec::new()), HashMap::new(), HashMap::new());
    (Shipper { spool, destination, teller, pauses: QUICK, phase, failures, sent }, tell)
}

impl Shipper<Vec<u8>> {
    fn told(&self) -> String {
        String::from_utf8(self.teller.0.clone()).unwrap()
    }
}

fn block_on<T>(all: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(all)
}

/// Sends until all is sent, at most so many times.
async fn until_sent(shipper: &mut Shipper<Vec<u8>>, most: usize, mut after: impl FnMut()) -> usize {
    for tries in 1..=most {
        let ended = shipper.once().await;
        after();
        if ended == Ended::AllSent {
            return tries;
        }
    }
    panic!("some files wait after {most} tries: {}", shipper.told());
}
