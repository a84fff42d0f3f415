//! Recordings of earlier versions are read to the same reports and exports.
//!
//! Each folder of `recorded/` has a recording and what the version that made it said of it: 0.1.0
//! before values beside calls, and (`values`) with them. Keys of JSON may have come since; none may have
//! changed or gone.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Paths in JSON, below a recording, where the new value differs from the old one.
fn differences(path: &str, old: &Value, new: &Value, found: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => old.iter().for_each(|(key, old)| {
            let new = new.get(key).unwrap_or(&Value::Null);
            differences(&format!("{path}.{key}"), old, new, found);
        }),
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            let pairs = old.iter().zip(new).enumerate();
            pairs.for_each(|(i, (old, new))| differences(&format!("{path}[{i}]"), old, new, found));
        }
        (old, new) if old == new => {}
        (old, new) => found.push(format!("{path}: {old} became {new}")),
    }
}

fn folders() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut folders: Vec<_> = all.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

/// Returns the text that ctrace prints now, and the one that it printed.
fn now_and_then(folder: &Path, arguments: &[&str], file: &str) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ctrace"));
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{folder:?} {arguments:?}: {output:?}");
    let then = std::fs::read_to_string(folder.join(file)).unwrap();
    (String::from_utf8(output.stdout).unwrap(), then)
}

/// Several views, so that the report has all that a recording can tell.
const REPORT: &[&str] = &[
    "report",
    "old.ctrace",
    "--format",
    "json",
    "--view",
    "detail",
    "--view",
    "hist",
    "--view",
    "calls",
    "--view",
    "timeline",
    "--view",
    "threads",
];

#[test]
fn reports_are_the_same() {
    let folders = folders();
    assert!(folders.len() >= 7, "{folders:?}");
    for folder in folders {
        let (now, then) = now_and_then(&folder, REPORT, "report.json");
        let [now, then] = [now, then].map(|text| serde_json::from_str::<Value>(&text).unwrap());
        let mut found = Vec::new();
        differences("report", &then, &now, &mut found);
        assert_eq!(found, [""; 0], "{folder:?}");
    }
}

#[test]
fn exports_are_the_same() {
    for folder in folders() {
        for (format, file) in [("folded", "old.folded"), ("csv", "old.csv")] {
            let arguments = ["export", "old.ctrace", "--format", format];
            let (now, then) = now_and_then(&folder, &arguments, file);
            assert_eq!(now, then, "{folder:?} {format}");
        }
    }
}

/// A recording without control groups has one part, of a group that is not known.
#[test]
fn groups_that_are_not_recorded_are_unknown() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/processes");
    let report = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ctrace"));
        command.args(["report", "old.ctrace", "--by", "cgroup"]).args(options);
        let output = command.current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let lines = report(&["--format", "json"]);
    let reports: Vec<Value> = lines.lines().map(|line| line.parse().unwrap()).collect();
    let [whole, part] = &reports[..] else { panic!("{} reports", reports.len()) };
    assert_eq!((&part["part"]["name"], &part["part"]["is_cgroup"]), (&"".into(), &true.into()));
    assert_eq!(part["functions"], whole["functions"]);
    assert!(report(&[]).contains("Control group unknown · "));
}
