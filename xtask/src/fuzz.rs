//! Runs the fuzz targets briefly, from their corpus. `cargo fuzz run NAME` in their folder runs for
//! any time. Unit tests check the corpus alone.

use crate::machine::which;
use crate::summary::{Counts, Outcome};
use crate::{paths, progress};
use anyhow::Result;
use std::process::Command;

/// A folder, its targets, and the maximal length of inputs.
type Crate = (&'static str, &'static [&'static str], u32);

const CRATES: [Crate; 2] = [
    (
        "probe-user/core/fuzz",
        &["exports", "marker_buffers", "recording", "records", "report_facts"],
        4096,
    ),
    ("probe-user/fuzz", &["arguments", "list", "names", "providers"], 65_536),
];
const SECONDS: u32 = 20;
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The flags of `cargo fuzz` except the sanitizer, which needs a nightly compiler: this code has
/// nothing unsafe.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions --cfg fuzzing";

pub(crate) fn run() -> Result<(Outcome, Counts)> {
    if which("g++").is_none() {
        let why = "libFuzzer is built with g++, which is not installed".to_owned();
        return Ok((Outcome::Skipped(why), Counts::default()));
    }
    let target = paths::target().join("fuzz");
    for (folder, ..) in CRATES {
        let mut build = paths::cargo();
        build.args(["build", "--release", "--locked", "--target", TRIPLE]);
        build.current_dir(paths::root().join(folder)).env("CARGO_TARGET_DIR", &target);
        // The fuzzed code needs no eBPF programs.
        build.env("RUSTFLAGS", FLAGS).env("CTRACE_BPF_CARGO", "none");
        progress::must(&format!("build the fuzz targets of {folder}"), &mut build)?;
    }
    let fuzz = |folder: &str, name: &str, longest: u32| {
        let found = target.join("found").join(name);
        std::fs::create_dir_all(&found)?;
        let mut fuzz = Command::new(target.join(TRIPLE).join("release").join(name));
        let corpus = paths::root().join(folder).join("corpus").join(name);
        // New inputs stay out of the repository.
        fuzz.arg(&found).arg(corpus).current_dir(&target);
        fuzz.args(["-rss_limit_mb=512", "-timeout=10", "-print_final_stats=1"]);
        fuzz.arg(format!("-max_len={longest}")).arg(format!("-max_total_time={SECONDS}"));
        progress::must(&format!("fuzz {name}"), &mut fuzz)
    };
    let all = || {
        let of = |(folder, names, longest): Crate| names.iter().map(move |n| (folder, *n, longest));
        CRATES.into_iter().flat_map(of)
    };
    std::thread::scope(|scope| {
        let start = |(folder, name, longest)| scope.spawn(move || fuzz(folder, name, longest));
        let running: Vec<_> = all().map(start).collect();
        running.into_iter().try_for_each(|run| match run.join() {
            Ok(result) => result.map(drop),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok((Outcome::Passed, Counts { passed: all().count(), ..Counts::default() }))
}
