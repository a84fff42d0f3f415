//! The page of a session: it has the newest calls, and says what it has forgotten.

use super::tests::{Served, blocks, engine};
use super::*;
use crate::session::keep::live_calls::LiveCalls;
use ctrace_core::{
    recording::{End, Start},
    units::Nanos,
};
use serde_json::Value;
use std::time::Duration;

/// The chunks that are kept; each has a call, and takes 10 us.
const KEPT: u64 = 6;

/// Waits until the page says this.
fn wait_for(served: &Served, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..6_000 {
        let answer = served.get("api/about");
        if answer.starts_with(b"HTTP/1.1 200 ") {
            let about = served.json("api/about");
            if is_so(&about) {
                return about;
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: {}", served.json("api/about"));
}

#[test]
fn the_newest_calls_are_shown_and_the_oldest_forgotten() {
    let (mut calls, look) = LiveCalls::new(Nanos(10_000 * KEPT), usize::MAX);
    calls.begin(Start::default());
    let options = Options { port: 0, folder: None, files: Vec::new(), cache: None };
    let served = Served::of(Server::live(look, options).expect("it listens"));
    assert!(served.get("api/about").starts_with(b"HTTP/1.1 503 "), "there is nothing yet");
    let mut engine = engine();
    let mut show = |chunks: std::ops::Range<u64>| {
        let end_ns = Nanos(10_000 * chunks.end);
        chunks.for_each(|chunk| calls.take(blocks(&mut engine, chunk)));
        while !calls.is_wanted() {
            std::thread::sleep(Duration::from_millis(1));
        }
        calls.show(End { end_ns, ..End::default() });
    };
    show(0..2);
    let about = wait_for(&served, "two calls", |about| about["calls"] == 2);
    assert_eq!(about["live"], serde_json::json!({ "has_ended": false, "kept_from_ns": 0 }));
    assert_eq!(about["length_ns"], 20_000);
    show(2..50);
    let about = wait_for(&served, "the newest", |about| about["length_ns"] == 500_000);
    let from = about["live"]["kept_from_ns"].as_u64().expect("a time");
    // Times count from the start of the session.
    assert_eq!((&about["threads"][0]["first_ns"], from % 10_000), (&(from + 1_000).into(), 0));
    assert!((KEPT..=KEPT + 1).contains(&((500_000 - from) / 10_000)), "{about}");
    assert_eq!(about["calls"], (500_000 - from) / 10_000);
    drop(calls);
    wait_for(&served, "the end", |about| about["live"]["has_ended"] == true);
}
