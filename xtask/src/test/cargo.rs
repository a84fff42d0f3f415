//! Runs unit tests, and reads the output of `cargo test`.

use super::Options;
use crate::progress::{self, Done};
use crate::summary::{Counts, Outcome};
use crate::{paths, skips};
use anyhow::Result;

pub(super) fn unit_tests(_: &Options) -> Result<(Outcome, Counts)> {
    let mut command = paths::cargo();
    command.args([
        "test",
        "--locked",
        "--workspace",
        "--exclude",
        "ctrace-tests",
        "--no-fail-fast",
        // Skips are reported in captured output.
        "--",
        "--show-output",
    ]);
    let done = progress::run("unit tests", &mut command)?;
    tell_skips("unit tests", &done);
    judge(&done)
}

pub(super) fn tell_skips(stage: &str, done: &Done) {
    for (why, count) in skips::reasons(&done.output) {
        eprintln!("{stage}: {count} SKIPPED: {why}");
    }
}

pub(super) fn judge(done: &Done) -> Result<(Outcome, Counts)> {
    let counts = Counts::of_cargo_test(&done.output);
    if done.status.success() {
        return Ok((Outcome::Passed, counts));
    }
    eprintln!("{}", failures(&done.output));
    let why = format!("{}; see {}", done.status, done.log.display());
    Ok((Outcome::Failed(why), counts))
}

/// Returns the parts of the output that report failures, or its end when there are none.
fn failures(output: &str) -> String {
    let mut shown = Vec::new();
    let (mut inside, mut passed) = (false, false);
    for line in output.lines() {
        if line.starts_with("failures:") {
            (inside, passed) = (true, false);
        }
        passed |= line.starts_with("successes:");
        if inside || line.starts_with("error") && !passed {
            shown.push(line);
        }
        if line.starts_with("test result:") {
            (inside, passed) = (false, false);
        }
    }
    if shown.is_empty() { progress::tail(output) } else { shown.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_cut_out_of_the_output() {
        let output = "test a ... ok\nsuccesses:\n---- a ----\nerror 5\nfailures:\n---- b ----\nwrong\nfailures:\n    b\n\ntest result: \
                      FAILED. 1 passed\nrunning 1 test\ntest result: ok.";
        let shown = failures(output);
        assert!(shown.contains("wrong") && !shown.contains("running"), "{shown}");
        assert!(!shown.contains("error 5"), "{shown}");
    }
}
