//! `ctrace export` as a user calls it.

mod support;

use ctrace_common::Kind;
use ctrace_core::formats::Format;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{Event, ctrace, record};

/// A call of 4 µs, recorded.
fn recording() -> Vec<u8> {
    let events = [(Kind::Enter, 1_000), (Kind::Return, 5_000)];
    let events = events.map(|(kind, time)| Event { kind, function: 0, time });
    record("/bin/app", &["work"], events, 5_000)
}

fn export(folder: &Path, arguments: &[&str]) -> Output {
    ctrace(folder, &[&["export"], arguments].concat())
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.ctrace"), recording()).unwrap();
    folder
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn writes_to_stdout_and_tells_the_rest_on_stderr() {
    let folder = folder();
    let done = export(folder.path(), &["run.ctrace", "--format", "folded"]);
    assert_eq!((text(&done.stdout), done.status.code()), ("work 4000\n", Some(0)));
    assert_eq!(text(&done.stderr), "ctrace: 1 call exported; no events lost\n");
}

#[test]
fn writes_every_format_to_a_file() {
    let folder = folder();
    for format in Format::ALL {
        let out = format!("out.{}", format.extension);
        let done = export(folder.path(), &["run.ctrace", "--format", format.name, "-o", &out]);
        assert!(done.status.success() && done.stdout.is_empty(), "{}", text(&done.stderr));
        assert!(folder.path().join(out).metadata().unwrap().len() > 0, "{}", format.name);
    }
}

#[test]
fn help_knows_every_format() {
    let help = export(Path::new("/"), &["--help"]);
    for format in Format::ALL {
        assert!(text(&help.stdout).contains(&format!("- {}:", format.name)), "{}", format.name);
    }
}

/// Fails with one line that has `part` in it.
#[track_caller]
fn fails(arguments: &[&str], part: &str) {
    let folder = folder();
    std::fs::write(folder.path().join("text"), "hello").unwrap();
    let done = export(folder.path(), arguments);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(125), "{said}");
    assert!(said.starts_with("ctrace: ") && said.contains(part), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(std::fs::read(folder.path().join("run.ctrace")).unwrap(), recording());
}

#[test]
fn mistakes_are_one_line() {
    fails(&["none.ctrace", "--format", "csv"], "cannot open none.ctrace");
    fails(&["text", "--format", "csv"], "text is no recording of ctrace");
    fails(&["run.ctrace", "--format", "excel"], "possible values: folded");
    fails(
        &["run.ctrace", "--format", "csv", "--reversed"],
        "--reversed is for --format flamegraph",
    );
    fails(&["run.ctrace", "--format", "csv", "--diff", "run.ctrace"], "--diff is for");
    fails(&["run.ctrace", "--format", "csv", "-o", "run.ctrace"], "is the recording itself");
    fails(&["run.ctrace", "--format", "csv", "-o", "no/such"], "cannot write no/such");
    fails(&["run.ctrace", "--format", "csv", "-o", "/dev/full"], "No space left");
    fails(&["run.ctrace", "--format", "csv", "-f", "wrok"], "near it: work");
    fails(&["run.ctrace", "--format", "csv", "--time", "1s.."], "it has 5.00 µs");
    fails(&["run.ctrace", "--format", "csv", "--thread", "8"], "no thread `8` was recorded");
    fails(&["run.ctrace", "--format", "csv", "--thread", "w-*"], "no thread `w-*` was recorded");
}

/// `outer` from 1 to 9 µs with `inner` from 3 to 5, and once more from 11 µs on.
fn nested() -> Vec<u8> {
    let events = [
        (Kind::Enter, 0, 1_000),
        (Kind::Enter, 1, 3_000),
        (Kind::Return, 1, 5_000),
        (Kind::Return, 0, 9_000),
        (Kind::Enter, 0, 11_000),
        (Kind::Enter, 1, 13_000),
        (Kind::Return, 1, 14_000),
        (Kind::Return, 0, 19_000),
    ];
    let events = events.map(|(kind, function, time)| Event { kind, function, time });
    record("/bin/app", &["outer", "inner"], events, 20_000)
}

/// The folded stacks of what the options leave of [`nested`], and the last line on stderr.
#[track_caller]
fn check_part(options: &[&str], stacks: &str, told: &str) {
    let folder = folder();
    std::fs::write(folder.path().join("nested.ctrace"), nested()).unwrap();
    let done = export(folder.path(), &[&["nested.ctrace", "--format", "folded"], options].concat());
    let said = text(&done.stderr);
    assert_eq!((text(&done.stdout), done.status.code()), (stacks, Some(0)), "{options:?}: {said}");
    assert_eq!(
        said.lines().last().unwrap(),
        format!("ctrace: {told}; no events lost"),
        "{options:?}"
    );
}

#[test]
fn what_is_exported_can_be_chosen() {
    check_part(&[], "outer 13000\nouter;inner 3000\n", "4 calls exported");
    check_part(&["-f", "inner"], "inner 3000\n", "2 calls exported");
    check_part(&["-x", "inner"], "outer 16000\n", "2 calls exported");
    check_part(&["--depth", "1"], "outer 16000\n", "2 calls exported");
    check_part(&["--root", "inner"], "inner 3000\n", "2 calls exported");
    check_part(&["--caller", "inner"], "inner 3000\n", "2 calls exported");
    check_part(&["--time", "..10us"], "outer 6000\nouter;inner 2000\n", "2 calls exported");
    check_part(&["--time", "10us.."], "outer 7000\nouter;inner 1000\n", "2 calls exported");
    check_part(&["--min-duration", "2us"], "outer 14000\nouter;inner 2000\n", "3 calls exported");
    check_part(&["--thread", "7", "-f", "inner"], "inner 3000\n", "2 calls exported");
    check_part(&["--thread", "ma[hi]*"], "outer 13000\nouter;inner 3000\n", "4 calls exported");
    check_part(&["--min-duration", "1s"], "", "0 calls exported");
}

#[test]
fn what_is_left_out_is_told() {
    let folder = folder();
    let done = export(folder.path(), &["run.ctrace", "--format", "csv", "--min-duration", "1s"]);
    assert_eq!(text(&done.stdout).lines().count(), 1);
    assert!(text(&done.stderr).contains("1 call was filtered out"), "{}", text(&done.stderr));
}

#[test]
fn nothing_replaces_what_was_there() {
    let folder = folder();
    std::fs::write(folder.path().join("out"), "of yesterday").unwrap();
    let nothing = ["run.ctrace", "--format", "folded", "--min-duration", "1s", "-o", "out"];
    assert!(export(folder.path(), &nothing).status.success());
    assert_eq!(std::fs::read(folder.path().join("out")).unwrap(), b"");
}

#[test]
fn a_recording_that_was_cut_off_is_exported_as_far_as_it_goes() {
    let folder = folder();
    let mut bytes = recording();
    bytes.truncate(bytes.len() - 20);
    std::fs::write(folder.path().join("cut.ctrace"), bytes).unwrap();
    let done = export(folder.path(), &["cut.ctrace", "--format", "folded"]);
    assert_eq!((text(&done.stdout), done.status.code()), ("work 4000\n", Some(0)));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = folder();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ctrace"))
        .args(["export", "run.ctrace", "--format", "jsonl"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
