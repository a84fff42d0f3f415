//! Recordings made to take memory and time: each ends soon, with a plain line, in bounded memory.
//! `the_files_of_the_attacks` of ctrace-core made them.

use ctrace_tests::env::workspace;
use ctrace_tests::process::{Finished, run};
use ctrace_tests::{gate, or_skip};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Time limit against hangs, for busy machines as well.
const LIMIT: Duration = Duration::from_secs(40);
/// Limit of addresses in KiB: many threads reserve stacks and hardly touch them.
const MOST_MEMORY: &str = "4000000";

fn look(ctrace: &Path, arguments: &str, file: &str) -> Finished {
    let script = format!(
        "ulimit -v {MOST_MEMORY}; exec {} {arguments} tests/attacks/{file} >/dev/null",
        ctrace.display()
    );
    let mut command = Command::new("sh");
    run(command.args(["-c", &script]).current_dir(workspace()), LIMIT).expect("it ends")
}

/// Checks that it is refused with a line that gives the remedy.
#[track_caller]
fn refused(ctrace: &Path, arguments: &str, file: &str, remedy: &str) {
    let ended = look(ctrace, arguments, file);
    assert_eq!(ended.shell_code(), 125, "{arguments} {file}: {}", ended.stderr);
    assert!(ended.stderr.contains(remedy), "{arguments} {file}: {}", ended.stderr);
    assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn calls_without_end_are_refused() {
    let ctrace = or_skip!(gate::binary());
    for arguments in [
        "report",
        "report --interval 1",
        "export --format jsonl",
        "export --format perfetto",
        "diff tests/attacks/late_end.ctrace",
    ] {
        refused(&ctrace, arguments, "many_calls.ctrace", "--max-calls N");
    }
}

#[test]
fn an_end_in_centuries_makes_no_reports_without_end() {
    let ctrace = or_skip!(gate::binary());
    for arguments in ["report --interval 1", "report --interval 1ms --cumulative"] {
        refused(&ctrace, arguments, "late_end.ctrace", "--time");
    }
    let whole = look(&ctrace, "report", "late_end.ctrace");
    assert_eq!(whole.shell_code(), 0, "{}", whole.stderr);
    let part = look(&ctrace, "report --interval 1 --time ..3s", "late_end.ctrace");
    assert_eq!(part.shell_code(), 0, "{}", part.stderr);
}

#[test]
fn an_export_ends_where_no_recording_of_ours_goes() {
    let ctrace = or_skip!(gate::binary());
    refused(&ctrace, "export --format jsonl", "long_names.ctrace", "--max-output SIZE");
    refused(&ctrace, "export --format csv --max-output 1M", "long_names.ctrace", "--max-output");
}
