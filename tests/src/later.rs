//! Traces of processes that come and go: starts those, and waits for what ctrace says of them.

use crate::look::wait_until;
use crate::process::Running;
use crate::report::Report;
use crate::trace::Started;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{ChildStdin, Command};

/// Starts the processes, which wait for the end of their input.
pub fn start(command: &mut Command) -> (Running, ChildStdin) {
    let (running, input, output) = Running::start_piped(command).expect("starts");
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    (running, input)
}

/// Returns the report when ctrace has ended by itself.
pub fn report_of(started: Started) -> Report {
    let traced = started.wait().and_then(|traced| traced.expect_code(0)).expect("traces");
    Report(traced.report().expect("a report").0.clone())
}

/// Returns the processes that called something.
pub fn pids(report: &Report) -> BTreeSet<i64> {
    let threads = report.0["threads"].as_array().expect("a list").iter();
    threads.map(|thread| thread["pid"].as_i64().expect("a number")).collect()
}

/// Waits until ctrace has said this.
pub fn wait_for(started: &Started, words: &str) {
    let said = || started.running.said().contains(words);
    wait_until(&format!("ctrace says `{words}`"), said)
        .unwrap_or_else(|error| panic!("{error}: {}", started.running.said()));
}

/// Waits until ctrace has told that a process joins.
pub fn joins(started: &Started, process: &Running) {
    wait_for(started, &format!("process {} joins: ", process.pid()));
}

/// Ends a trace that awaits further processes, and returns its report.
pub fn interrupt(started: Started) -> Report {
    started.running.signal(Signal::INT).expect("ctrace runs");
    report_of(started)
}
