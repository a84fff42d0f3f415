//! Tests the daemon on live targets: what it traces, when it reports, and how it obeys.

use ctrace_tests::daemon::{Daemon, calls, check_reports, folder, reports};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::wait_until;
use ctrace_tests::probes::changed_bytes;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::fs::read_to_string;
use std::time::Duration;

const SPIN: &str =
    "[[target]]\nid = \"spin\"\nexe = \"DIR/spin\"\nfunctions = [\"step\", \"mix\"]\n";

fn start(env: &Env, targets: &str) -> Daemon {
    let (spin, hiccup) = (program("spin.c"), program("hiccup.c"));
    let dir = folder(env, &[("spin", &spin), ("hiccup", &hiccup)]).expect("targets build");
    Daemon::start(env, dir, targets).expect("the daemon starts")
}

/// A target starts, ends and starts again. Its reports contain all of it, and their sums go on.
#[test]
fn restarts_are_followed() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env, &format!("{SPIN}interval = \"500ms\"\n"));
    for round in 0..2 {
        let target = daemon.target("spin", &["0", "500"]).expect("starts");
        daemon.wait_until_traced(target.pid()).expect("traced");
        std::thread::sleep(Duration::from_millis(1500));
        target.signal(Signal::TERM).expect("runs");
        let finished = target.wait(Duration::from_secs(30)).expect("ends");
        assert_eq!(finished.shell_code(), 0, "round {round}: {}", finished.stdout);
        wait_until("it is let go", || daemon.traced().is_empty()).expect("let go");
    }
    let (finished, _dir) = daemon.end().expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let all = reports(&finished.stdout).expect("JSON lines");
    check_reports(&all).expect("end to end");
    let last = all.last().expect("reports");
    assert_eq!(last["target"]["exit"]["code"], 0, "{last}");
    assert_eq!(last["daemon"]["since_start"]["processes"], 2);
    let sum: u64 = all.iter().map(|report| calls(report, "step") + calls(report, "mix")).sum();
    let told = last["daemon"]["since_start"]["calls"].as_u64().expect("a number");
    assert!(told > 500 && told <= sum, "{told} of {sum}");
}

/// SIGTERM brings the report of the unfinished interval, and leaves the target as it was.
#[test]
fn the_end_brings_a_last_report() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env, &format!("{SPIN}interval = \"60m\"\n"));
    let target = daemon.target("spin", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(target.pid()).expect("traced");
    std::thread::sleep(Duration::from_secs(1));
    let path = daemon.path("spin");
    let (finished, _dir) = daemon.end().expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let all = reports(&finished.stdout).expect("JSON lines");
    assert_eq!(all.len(), 1, "{}", finished.stdout);
    assert!(calls(&all[0], "step") > 50, "{}", all[0]);
    assert_eq!(changed_bytes(target.pid(), &path).expect("memory"), Vec::<u64>::new());
}

/// A broken configuration changes nothing; a good one takes effect.
#[test]
fn reloads() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(&env, &format!("{SPIN}interval = \"60m\"\n"));
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    let hiccup = daemon.target("hiccup", &[]).expect("starts");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    daemon.configure(&format!("{SPIN}intervall = \"1s\"\n")).expect("written");
    let refused = daemon.ctl(&["reload"]).expect("runs");
    assert_eq!(refused.shell_code(), 125, "{}", refused.stdout);
    assert!(refused.stderr.contains("ctrace.toml:11:1:"), "{}", refused.stderr);
    assert!(refused.stderr.contains("nearest is `interval`"), "{}", refused.stderr);
    assert_eq!(daemon.traced(), [i64::from(spin.pid())]);
    let more = "[[target]]\nid = \"hiccup\"\nexe = \"DIR/hiccup\"\nfunctions = \"quick\"\n";
    daemon.configure(&format!("{SPIN}interval = \"60m\"\n{more}")).expect("written");
    daemon.signal(Signal::HUP).expect("runs");
    daemon.wait_until_traced(hiccup.pid()).expect("traced");
    let session = |daemon: &Daemon| {
        daemon.ask(&["targets"]).expect("answers")["targets"][0]["processes"][0]["session"].clone()
    };
    assert_eq!(session(&daemon), 1, "the other was not disturbed");
    daemon.configure(more).expect("written");
    daemon.ask(&["reload"]).expect("sound");
    wait_until("spin is let go", || daemon.traced() == [i64::from(hiccup.pid())]).expect("gone");
    let (finished, _dir) = daemon.end().expect("ends");
    assert!(finished.stderr.contains("the configuration of before stays"), "{}", finished.stderr);
}

/// Processes that two targets match or that cannot be traced are logged once each.
#[test]
fn troubles_are_told_once() {
    let env = or_skip!(gate::live(Link::Session));
    let targets = format!(
        "{SPIN}slow = \"1s\"\nslow_functions = \"nothing\"\n\
         [[target]]\nid = \"again\"\nexe = \"DIR/spin\"\nfunctions = \"*\"\n\
         [[target]]\nid = \"wrong\"\nexe = \"DIR/hiccup\"\nfunctions = \"no_such_function\"\n"
    );
    let daemon = start(&env, &targets);
    let spins = [0, 1].map(|_| daemon.target("spin", &["0", "10"]).expect("starts"));
    let hiccup = daemon.target("hiccup", &[]).expect("starts");
    for spin in &spins {
        daemon.wait_until_traced(spin.pid()).expect("traced");
    }
    std::thread::sleep(Duration::from_secs(8));
    assert!(!daemon.traced().contains(&hiccup.pid().into()));
    let targets = daemon.ctl(&["targets"]).expect("answers").stdout;
    let why = targets.lines().find(|line| line.contains("is not traced")).expect("it is told");
    assert!(why.contains(&hiccup.pid().to_string()) && why.contains("no_such_function"), "{why}");
    let (finished, _dir) = daemon.end().expect("ends");
    let told = |part: &str| finished.stderr.lines().filter(|line| line.contains(part)).count();
    assert_eq!(told("matches the targets spin and again"), 1, "{}", finished.stderr);
    assert_eq!(told("no_such_function"), 1, "{}", finished.stderr);
    assert_eq!(told("no slow call is kept"), 1, "{}", finished.stderr);
}

/// Files of reports are bounded in size and number, and hold whole lines.
#[test]
fn files_are_rotated() {
    let env = or_skip!(gate::live(Link::Session));
    let daemon = start(
        &env,
        &format!(
            "{SPIN}interval = \"100ms\"\noutput = \"DIR/spin.jsonl\"\nrotate_size = \"16K\"\n\
             keep_files = 3\n"
        ),
    );
    let _target = daemon.target("spin", &["0", "500"]).expect("starts");
    let third = daemon.path("spin.jsonl.3");
    wait_until("three files are full", || third.exists()).expect("rotated");
    let (_, dir) = daemon.end().expect("ends");
    let mut names: Vec<String> = std::fs::read_dir(dir.path())
        .expect("there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("spin.jsonl"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "{names:?}");
    for name in names {
        let text = read_to_string(dir.path().join(&name)).expect("readable");
        assert!(text.len() <= 16 << 10, "{name} has {} bytes", text.len());
        check_reports(&reports(&text).expect("whole lines")).expect("end to end");
    }
}

/// Names that would drive a terminal reach neither reports nor the log.
#[test]
fn hostile_names_are_harmless() {
    let env = or_skip!(gate::live(Link::Session));
    let spin = program("spin.c");
    let evil = "ev\u{1b}[2J\u{1b}]0;x\u{7}il";
    let dir = folder(&env, &[("spin", &spin), (evil, &spin)]).expect("targets build");
    let daemon = Daemon::start(
        &env,
        dir,
        "[[target]]\nid = \"evil\"\nexe = \"DIR/ev*\"\nfunctions = [\"step\", \"mix\"]\nreport = \
         \"table\"\ninterval = \"500ms\"\nviews = [\"summary\", \"threads\"]\n\
         [[target]]\nid = \"more\"\nexe = \"DIR/sp*\"\nfunctions = \"nothing\\u001B[2J\"\n",
    )
    .expect("starts");
    let target = daemon.target(evil, &["0", "500"]).expect("starts");
    let _untraceable = daemon.target("spin", &["0", "10"]).expect("starts");
    daemon.wait_until_traced(target.pid()).expect("traced");
    let shown = [&["targets"][..], &["report"], &["report", "no\u{1b}one"]]
        .map(|arguments| daemon.ctl(arguments).expect("answers"));
    std::thread::sleep(Duration::from_secs(6));
    let (finished, _dir) = daemon.end().expect("ends");
    assert!(finished.stdout.contains("step"), "{}", finished.stdout);
    for text in shown.iter().chain([&finished]).flat_map(|f| [&f.stdout, &f.stderr]) {
        let harmful = text.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(harmful, None, "{text:?}");
    }
}
