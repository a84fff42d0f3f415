//! A short run of the fuzz targets of ctrace-core, from their corpus. `cargo fuzz run NAME` in
//! probe-user/core/fuzz goes on for as long as one likes.

use crate::machine::which;
use crate::summary::{Counts, Outcome};
use crate::{paths, progress};
use anyhow::Result;
use std::process::Command;

const TARGETS: [&str; 4] = ["marker_buffers", "recording", "records", "report_facts"];
const SECONDS: u32 = 20;
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// What `cargo fuzz` gives to the compiler, but for the sanitizer, which needs a nightly compiler:
/// this code has nothing unsafe.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions --cfg fuzzing";

pub(crate) fn run() -> Result<(Outcome, Counts)> {
    if which("g++").is_none() {
        let why = "libFuzzer is built with g++, which is not installed".to_owned();
        return Ok((Outcome::Skipped(why), Counts::default()));
    }
    let (folder, target) =
        (paths::root().join("probe-user/core/fuzz"), paths::target().join("fuzz"));
    let mut build = paths::cargo();
    build.args(["build", "--release", "--locked", "--target", TRIPLE]).current_dir(&folder);
    build.env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", FLAGS);
    progress::must("build the fuzz targets", &mut build)?;
    let fuzz = |name: &str| {
        let found = target.join("found").join(name);
        std::fs::create_dir_all(&found)?;
        let mut fuzz = Command::new(target.join(TRIPLE).join("release").join(name));
        // What it writes stays out of the repository.
        fuzz.arg(&found).arg(folder.join("corpus").join(name)).current_dir(&target);
        fuzz.args(["-rss_limit_mb=512", "-max_len=4096", "-timeout=10", "-print_final_stats=1"]);
        progress::must(&format!("fuzz {name}"), fuzz.arg(format!("-max_total_time={SECONDS}")))
    };
    std::thread::scope(|scope| {
        let running = TARGETS.map(|name| scope.spawn(move || fuzz(name)));
        running.into_iter().try_for_each(|run| match run.join() {
            Ok(result) => result.map(drop),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok((Outcome::Passed, Counts { passed: TARGETS.len(), ..Counts::default() }))
}
