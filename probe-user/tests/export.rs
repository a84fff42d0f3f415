//! `ctrace export` as a user calls it.

use ctrace_common::{Kind, RECORD_LEN};
use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::formats::Format;
use ctrace_core::function::{ExitSeen, FunctionInfo, FunctionKind};
use ctrace_core::record::{End, Start, Writer};
use ctrace_core::units::Nanos;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A call of 4 µs, recorded.
fn recording() -> Vec<u8> {
    let mut engine = Engine::new(EngineConfig { record: true, ..EngineConfig::default() });
    engine.add_function(FunctionInfo {
        name: "work".into(),
        aliases: Vec::new(),
        object: "app".into(),
        file: None,
        line: None,
        kind: FunctionKind::Function,
        group: None,
        exit: ExitSeen::ByReturnProbe,
        entry_is_loop_head: false,
        may_tail_jump: false,
    });
    for (kind, time) in [(Kind::Enter, 1_000_u64), (Kind::Return, 5_000)] {
        let mut record = [0; RECORD_LEN];
        record[..8].copy_from_slice(&time.to_le_bytes());
        record[8..16].copy_from_slice(&0x7fff_0000_u64.to_le_bytes());
        record[16..20].copy_from_slice(&7_u32.to_le_bytes());
        record[20..24].copy_from_slice(&7_u32.to_le_bytes());
        record[28] = kind as u8;
        engine.push(0, &record);
    }
    engine.advance(Nanos(5_000));
    engine.end_chunk(Nanos(5_000));
    let mut writer = Writer::new(Vec::new(), &Start::default()).unwrap();
    engine.take_blocks().iter().for_each(|block| writer.write(block).unwrap());
    writer.finish(&End { end_ns: Nanos(5_000), ..End::default() }).unwrap()
}

fn export(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ctrace"));
    command.arg("export").args(arguments).current_dir(folder).output().unwrap()
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
    assert_eq!(text(&done.stderr), "ctrace: 1 call exported; loss: none\n");
}

#[test]
fn writes_every_format_to_a_file() {
    let folder = folder();
    for format in Format::<File>::ALL {
        let out = format!("out.{}", format.extension);
        let done = export(folder.path(), &["run.ctrace", "--format", format.name, "-o", &out]);
        assert!(done.status.success() && done.stdout.is_empty(), "{}", text(&done.stderr));
        assert!(folder.path().join(out).metadata().unwrap().len() > 0, "{}", format.name);
    }
}

#[test]
fn help_knows_every_format() {
    let help = export(Path::new("/"), &["--help"]);
    for format in Format::<File>::ALL {
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
