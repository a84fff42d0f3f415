//! Work that takes long: others do not wait for it, it ends when nobody waits for it, and its failure is told.

use super::tests::{Served, of_chunks};
use super::*;
use ctrace_core::recording::ReadAt;
use std::{
    io::Write as _,
    sync::{
        Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

const CHUNKS: u64 = 2_000;

/// Holds reads up, and counts them.
#[derive(Default)]
pub(super) struct Barrier {
    is_shut: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
    pub(super) reads: AtomicUsize,
    panics: AtomicBool,
}

impl Barrier {
    fn shut(&self, shut: bool) {
        *self.is_shut.lock().expect("no reader panics with it") = shut;
        self.opened.notify_all();
    }

    fn pass(&self) {
        assert!(!self.panics.load(Ordering::Relaxed), "this panic is part of a test");
        self.reads.fetch_add(1, Ordering::Relaxed);
        let is_shut = self.is_shut.lock().expect("no reader panics with it");
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let passed = self.opened.wait_while(is_shut, |is_shut| *is_shut);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        drop(passed);
    }
}

struct Held(Vec<u8>, Arc<Barrier>);

impl ReadAt for Held {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.1.pass();
        self.0.read_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

pub(super) fn recording() -> (Recording, Arc<Barrier>) {
    let barrier = Arc::<Barrier>::default();
    let held = Held(of_chunks(CHUNKS), Arc::clone(&barrier));
    (Recording::open(held).expect("a recording"), barrier)
}

pub(super) fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never happens that {what}");
}

const REPORT: &str = "api/report?from=0&to=20000000";

#[test]
fn a_report_keeps_no_picture_waiting_and_ends_with_its_page() {
    let (recording, barrier) = recording();
    let served = Served::new(recording);
    // The calls that pictures need are kept from now on, so that they read nothing.
    let picture = || served.body("api/picture?from=0&to=20000000&pixels=100&rows=0.0-0,1.0-0");
    assert!(picture().starts_with(b"CTP2"));
    barrier.shut(true);
    let mut page = served.connect();
    page.write_all(served.request(REPORT).as_bytes()).expect("it listens");
    let threads = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    let threads = threads.or_else(|| Some(std::thread::available_parallelism().ok()?.get()));
    let waiting = || barrier.waiting.load(Ordering::Relaxed);
    until("all threads of reports wait", || Some(waiting()) >= threads);
    assert!(picture().starts_with(b"CTP2"));
    // The page is closed. Answers after that show that the server has noticed.
    drop(page);
    (0..3).for_each(|_| drop(served.body("api/about")));
    let reads = || barrier.reads.load(Ordering::Relaxed);
    let before = reads();
    barrier.shut(false);
    let rest = || {
        let so_far = reads();
        std::thread::sleep(Duration::from_millis(300));
        reads() == so_far
    };
    until("reading ends", rest);
    let after = reads() - before;
    assert!(after < CHUNKS as usize, "{after} reads after the page was closed");
    let whole = reads();
    served.body(REPORT);
    assert!(reads() - whole > CHUNKS as usize, "a report that is waited for reads all");
}

#[test]
fn a_failure_while_reading_is_told() {
    let (recording, barrier) = recording();
    barrier.panics.store(true, Ordering::Relaxed);
    let served = Served::new(recording);
    let answer = String::from_utf8(served.get("api/about")).expect("text");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("ctrace failed while it read the recording"), "{answer}");
}

#[test]
fn a_failure_while_comparing_is_told_and_the_other_recording_is_shown() {
    let (old, barrier) = recording();
    barrier.panics.store(true, Ordering::Relaxed);
    let served = Served::compared(old, recording().0, None);
    let answer = |path: &str| String::from_utf8(served.get(path)).expect("text");
    let verdicts = answer("api/verdicts");
    assert!(verdicts.starts_with("HTTP/1.1 400 "), "{verdicts}");
    assert!(verdicts.contains("ctrace failed while it compared the recordings"), "{verdicts}");
    assert!(answer("old/api/about").contains("ctrace failed while it read the recording"));
    assert!(answer("new/api/about").starts_with("HTTP/1.1 200 "));
}
