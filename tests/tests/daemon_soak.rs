//! Everything at once, for a while: targets that start and end, are killed and fork, reloads, rings
//! that overflow, a full disk, and a daemon that is killed. What must stay flat is held against what
//! it was after the first round.
//!
//! Short by default; `CTRACE_SOAK_SECONDS=3600 cargo test --release -p ctrace-tests --test
//! daemon_soak` for as long as one likes.

use ctrace_tests::daemon::{Daemon, check_reports, folder, reports};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::wait_until;
use ctrace_tests::probes::changed_bytes;
use ctrace_tests::process::Running;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant};

const TARGETS: &str = "[defaults]\ninterval = \"200ms\"\n\
    [[target]]\nid = \"spin\"\nexe = \"DIR/spin\"\nfunctions = [\"step\", \"mix\"]\n\
    output = \"DIR/spin.jsonl\"\nring_size = \"64K\"\nrotate_size = \"1M\"\nkeep_files = 3\n\
    [[target]]\nid = \"hiccup\"\nexe = \"DIR/hiccup\"\nfunctions = [\"quick\", \"slow\"]\n\
    output = \"DIR/hiccup.jsonl\"\nslow = \"100ms\"\nslow_pause = \"1s\"\n\
    [[target]]\nid = \"full\"\nexe = \"DIR/full\"\nfunctions = \"quick\"\noutput = \"/dev/full\"\n";

/// What a daemon holds.
#[derive(Debug)]
struct Held {
    files: usize,
    threads: usize,
    kilobytes: u64,
}

fn held(pid: i32) -> Held {
    let count = |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, Iterator::count);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    Held { files: count("fd"), threads: count("task"), kilobytes: kilobytes.unwrap_or(0) }
}

fn start(env: &Env, dir: tempfile::TempDir) -> Daemon {
    Daemon::start(env, dir, TARGETS).expect("the daemon starts")
}

/// A round: as many things as fit, and then nothing is traced any more.
fn round(daemon: &Daemon, number: u64) {
    let mut running: Vec<Running> = Vec::new();
    // The first goes as fast as it can, and its rings overflow.
    for arguments in [&["0", "0"][..], &["0", "200"], &["0", "1000", "3"]] {
        running.push(daemon.target("spin", arguments).expect("starts"));
    }
    running.push(daemon.target("hiccup", &[]).expect("starts"));
    running.push(daemon.target("full", &[]).expect("starts"));
    if number.is_multiple_of(2) {
        wait_until("a target is traced", || !daemon.traced().is_empty()).expect("traced");
    }
    if number.is_multiple_of(3) {
        daemon.signal(Signal::HUP).expect("runs");
    }
    std::thread::sleep(Duration::from_millis(number * 137 % 1500));
    for (place, target) in running.into_iter().enumerate() {
        let signal = if place.is_multiple_of(2) { Signal::KILL } else { Signal::TERM };
        target.signal(signal).expect("runs");
        target.wait(Duration::from_secs(30)).expect("ends");
    }
    wait_until("all are let go", || daemon.traced().is_empty()).expect("let go");
}

#[test]
fn all_stays_flat() {
    let env = or_skip!(gate::live(Link::Session));
    let seconds = std::env::var("CTRACE_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(20));
    let (spin, hiccup) = (program("spin.c"), program("hiccup.c"));
    let copies = [("spin", &spin), ("hiccup", &hiccup), ("full", &hiccup)];
    let daemon = start(&env, folder(&env, &copies).expect("targets build"));
    round(&daemon, 0);
    round(&daemon, 1);
    let first = held(daemon.pid());
    let mut number = 2;
    while number < 4 || Instant::now() < end {
        round(&daemon, number);
        number += 1;
    }
    wait_until("threads are gone", || held(daemon.pid()).threads <= first.threads + 1)
        .expect("gone");
    let last = held(daemon.pid());
    println!("{number} rounds: {first:?}, then {last:?}");
    assert!(last.files <= first.files + 2, "{first:?} {last:?}");
    assert!(last.kilobytes <= first.kilobytes + (16 << 10), "{first:?} {last:?}");
    assert!(last.kilobytes < 64 << 10, "{last:?}");
    // Killed, it leaves no trace in a target.
    let target = daemon.target("spin", &["0", "100"]).expect("starts");
    daemon.wait_until_traced(target.pid()).expect("traced");
    let path = daemon.path("spin");
    daemon.signal(Signal::KILL).expect("runs");
    wait_until("the probes are gone", || {
        changed_bytes(target.pid(), &path).is_ok_and(|bytes| bytes.is_empty())
    })
    .expect("gone");
    for name in ["spin.jsonl", "hiccup.jsonl"] {
        let text = fs::read_to_string(daemon.path(name)).expect("reports");
        // The last line may have been cut off by the kill.
        let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
        check_reports(&reports(whole).expect("whole lines")).expect("end to end");
    }
}
