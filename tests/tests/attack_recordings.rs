//! Recordings that were made to take memory and time: each ends with a plain line, soon, in bounded
//! memory. How they were made is in `the_files_of_the_attacks` of ctrace-core.

use ctrace_tests::env::workspace;
use ctrace_tests::process::{Finished, run};
use ctrace_tests::{gate, or_skip};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Against hangs: a machine that is busy takes its time.
const LIMIT: Duration = Duration::from_secs(40);
/// Of addresses, in KiB: many threads have their stacks, and hardly touch them.
const MOST_MEMORY: &str = "4000000";

fn look(ctrace: &Path, arguments: &str, file: &str) -> Finished {
    let script = format!(
        "ulimit -v {MOST_MEMORY}; exec {} {arguments} tests/attacks/{file} >/dev/null",
        ctrace.display()
    );
    let mut command = Command::new("sh");
    run(command.args(["-c", &script]).current_dir(workspace()), LIMIT).expect("it ends")
}

/// It is refused with a line that says what to do.
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
