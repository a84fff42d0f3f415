//! Tests the tables of daemons, and queries of them.

use ctrace_tests::daemon::{Daemon, calls, folder, reports};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::{files, wait_until};
use ctrace_tests::process::{Finished, run};
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const SPIN: &str = "[[target]]\nid = \"spin\"\nexe = \"DIR/spin\"\nfunctions = [\"step\", \"mix\"]\n\
    interval = \"500ms\"\n";

fn fleet(env: &Env, arguments: &[&str]) -> Finished {
    run(Command::new(&env.ctrace).arg("fleet").args(arguments), LIMIT).expect("runs")
}

fn json(env: &Env, arguments: &[&str]) -> Value {
    let finished = fleet(env, arguments);
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).expect("JSON")
}

/// Whatever a daemon reports is in its tables, over two runs of it and under two names.
#[test]
fn tables_add_up_to_the_reports() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env, &[("spin", &program("spin.c"))]).expect("targets build");
    let (mut expected, mut dir) = (0, Some(dir));
    for host in ["one", "../two"] {
        let tables =
            format!("[fleet]\nfolder = \"DIR/tables\"\nhost = \"{host}\"\nslow_from = \"1ns\"\n");
        let daemon = Daemon::start(&env, dir.take().expect("a folder"), &format!("{tables}{SPIN}"));
        let daemon = daemon.expect("the daemon starts");
        let spin = daemon.target("spin", &["0", "500"]).expect("starts");
        daemon.wait_until_traced(spin.pid()).expect("traced");
        std::thread::sleep(Duration::from_millis(1_800));
        let (finished, kept) = daemon.end().expect("ends");
        assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
        spin.signal(Signal::TERM).expect("runs");
        let all = reports(&finished.stdout).expect("JSON lines");
        assert!(all.len() >= 3, "{} reports", all.len());
        let last = all.last().expect("a report");
        expected += last["daemon"]["since_start"]["calls"].as_u64().expect("a number");
        dir = Some(kept);
    }
    let dir = dir.expect("a folder");
    let tables = dir.path().join("tables");
    let whole = files(&tables);
    assert!(whole.iter().all(|file| file.extension().is_some_and(|end| end == "parquet")));
    assert!(tables.join("functions/host=..%2Ftwo").is_dir(), "{whole:?}");
    assert_eq!(whole.len(), 8, "a file for each table and daemon: {whole:?}");
    let tables = tables.to_str().expect("a path");
    let all = json(&env, &["report", tables, "--format", "json"]);
    let report = &all["parts"][0]["report"];
    assert_eq!(calls(report, "step") + calls(report, "mix"), expected, "{all}");
    assert_eq!(all["parts"][0]["calls"].as_u64(), Some(expected));
    assert_eq!((&all["parts"][0]["hosts"], &all["damaged"]), (&2.into(), &Value::Array(vec![])));
    let parts = json(&env, &["report", tables, "--by", "host", "--format", "json"]);
    let hosts: Vec<_> = parts["parts"].as_array().expect("parts").iter().collect();
    assert_eq!((&hosts[0]["name"], &hosts[1]["name"]), (&"../two".into(), &"one".into()));
    let of_hosts: u64 = hosts
        .iter()
        .map(|part| calls(&part["report"], "step") + calls(&part["report"], "mix"))
        .sum();
    assert_eq!(of_hosts, expected);
    // The slowest call of all is the longest of the sums.
    let slow = json(&env, &["slow", tables, "-f", "step", "--top", "1", "--format", "json"]);
    let rows = report["functions"].as_array().expect("functions");
    let step = rows.iter().find(|row| row["name"] == "step").expect("a row");
    assert_eq!(slow["calls"][0]["duration_ns"], step["max_ns"], "{slow}");
    assert!(
        slow["calls"][0]["path"].as_array().is_some_and(|path| path.ends_with(&["step".into()]))
    );
    let shown = fleet(&env, &["slow", tables, "--host", "one", "-f", "mix", "--top", "2"]);
    assert_eq!(shown.stdout.matches("inside: self").count(), 2, "{}", shown.stdout);
    let shown = fleet(&env, &["report", tables, "--host", "o*", "-f", "step"]);
    assert!(shown.stdout.contains("1 host") && !shown.stdout.contains("mix"), "{}", shown.stdout);
}

/// A drawing and a comparison of two parts of the time are made of the same tables.
#[test]
fn a_fleet_is_drawn_and_compared() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env, &[("spin", &program("spin.c"))]).expect("targets build");
    let config = format!("[fleet]\nfolder = \"DIR/tables\"\n{}", SPIN.replace("500ms", "100ms"));
    let daemon = Daemon::start(&env, dir, &config).expect("the daemon starts");
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    std::thread::sleep(Duration::from_secs(3));
    let (_, dir) = daemon.end().expect("ends");
    let tables = dir.path().join("tables");
    let tables = tables.to_str().expect("a path");
    let all = json(&env, &["report", tables, "--by", "version", "--format", "json"]);
    let drawn = fleet(&env, &["flamegraph", tables, "-f", "step"]);
    assert!(drawn.stdout.contains("<svg") && drawn.stdout.contains("step"), "{}", drawn.stderr);
    let version = all["parts"][0]["name"].as_str().expect("a version");
    // Two sides that are the same differ in nothing.
    let same = fleet(&env, &["diff", tables, "--version", version, version, "--format", "json"]);
    if version != "unknown" {
        assert_eq!(same.shell_code(), 0, "{}", same.stderr);
        let found: Value = serde_json::from_str(&same.stdout).expect("JSON");
        let calls: u64 = all["parts"][0]["calls"].as_u64().expect("a number");
        let functions = found["functions"].as_array().expect("functions");
        let told = functions.iter().filter_map(|row| row["old_calls"].as_u64()).sum::<u64>();
        assert_eq!((told, &found["old"]["kind"]), (calls, &"fleet".into()), "{found}");
        for row in functions {
            let change = row["changes"]["p50_ns"]["change_percent"].as_f64();
            assert!(change.is_none_or(|change| change.abs() < 1e-6), "{row}");
        }
    }
    let none = fleet(&env, &["diff", tables, "--before", "2001-02-03"]);
    assert_eq!(none.shell_code(), 125, "{}", none.stdout);
    assert!(none.stderr.contains("the side “before 2001-02-03T00:00:00”"), "{}", none.stderr);
}

/// Returns the folders of days below a folder of tables, of each table.
fn days(tables: &Path) -> Vec<PathBuf> {
    let inside = |folder: PathBuf| {
        folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path())
    };
    inside(tables.to_owned()).flat_map(inside).flat_map(inside).collect()
}

/// A daemon puts the files of a day that is over together, with the same rows.
#[test]
fn finished_days_become_few_files() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env, &[("spin", &program("spin.c"))]).expect("targets build");
    let tables = "[fleet]\nfolder = \"DIR/tables\"\ninterval = \"1s\"\nkeep_days = 100000\n\
                  compact = true\n";
    let config = format!("{tables}{SPIN}");
    let daemon = Daemon::start(&env, dir, &config).expect("the daemon starts");
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    let of_functions = |tables: &Path| files(&tables.join("functions"));
    wait_until("files are written", || of_functions(&daemon.path("tables")).len() > 2)
        .expect("written");
    let (_, dir) = daemon.end().expect("ends");
    spin.signal(Signal::TERM).expect("runs");
    let tables = dir.path().join("tables");
    // That day is long over.
    let old = |day: &Path| day.with_file_name("day=2020-01-02");
    days(&tables).iter().for_each(|day| std::fs::rename(day, old(day)).expect("renamed"));
    let report = |tables: &Path| {
        let tables = tables.to_str().expect("a path");
        let mut all = json(&env, &["report", tables, "--by", "host", "--format", "json"]);
        all["files"].take();
        all
    };
    let before = report(&tables);

    let daemon = Daemon::start(&env, dir, &config).expect("the daemon starts");
    let _spin = daemon.target("spin", &["0", "500"]).expect("starts");
    let tables = daemon.path("tables");
    wait_until("few files are left", || {
        let mut old = days(&tables).into_iter().filter(|day| day.ends_with("day=2020-01-02"));
        old.all(|day| files(&day).len() == 1)
    })
    .expect("compacted");
    let (finished, dir) = daemon.end().expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let tables = dir.path().join("tables");
    let new = days(&tables).into_iter().filter(|day| !day.ends_with("day=2020-01-02"));
    new.for_each(|day| std::fs::remove_dir_all(day).expect("removed"));
    assert_eq!(report(&tables), before);
    let again = fleet(&env, &["compact", tables.to_str().expect("a path")]);
    assert!(again.stderr.contains("0 files became 0 files"), "{}", again.stderr);
}

/// A file in the place of the folder is told and counted, and nothing is lost once it is gone.
#[test]
fn a_folder_that_is_away_is_tried_again() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env, &[("spin", &program("spin.c"))]).expect("targets build");
    let blocked = dir.path().join("tables");
    std::fs::write(&blocked, "in the way").expect("written");
    let tables = "[fleet]\nfolder = \"DIR/tables\"\ninterval = \"1s\"\n";
    let daemon = Daemon::start(&env, dir, &format!("{tables}{SPIN}")).expect("the daemon starts");
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    std::thread::sleep(Duration::from_secs(4));
    std::fs::remove_file(&blocked).expect("removed");
    wait_until("tables are written", || !files(&daemon.path("tables")).is_empty())
        .expect("written");
    let (finished, dir) = daemon.end().expect("ends");
    assert_eq!(finished.stderr.matches("cannot write tables").count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("again; no row was lost"), "{}", finished.stderr);
    let all = reports(&finished.stdout).expect("JSON lines");
    let last = all.last().expect("a report");
    let tables = dir.path().join("tables");
    let read = json(&env, &["report", tables.to_str().expect("a path"), "--format", "json"]);
    assert_eq!(read["parts"][0]["calls"], last["daemon"]["since_start"]["calls"]);
}

/// A damaged file is named and left out, and a folder without tables is refused.
#[test]
fn damaged_files_are_left_out() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = tempfile::tempdir().expect("a folder");
    let folder = dir.path().join("functions/host=h/day=2026-11-28/unit=u");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join("part-1.parquet"), b"PAR1 is not enough PAR1").expect("written");
    std::fs::write(folder.join("part-2.parquet"), b"").expect("written");
    let root = dir.path().to_str().expect("a path");
    let finished = fleet(&env, &["report", root]);
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert_eq!(finished.stderr.matches("it is left out").count(), 2, "{}", finished.stderr);
    let all = json(&env, &["report", root, "--format", "json"]);
    assert_eq!(all["damaged"].as_array().map(Vec::len), Some(2), "{all}");
    let none = fleet(&env, &["report", folder.to_str().expect("a path")]);
    assert_eq!(none.shell_code(), 125, "{}", none.stdout);
    assert!(none.stderr.contains("has no tables"), "{}", none.stderr);
}
