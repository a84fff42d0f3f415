//! Runs the test programs side by side: many tests wait more than they work.

use crate::progress::{self, Done};
use crate::summary::{Counts, Outcome};
use crate::{artifacts, build, machine, paths, skips};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub package: String,
    /// The name of the test file, or of the library or program with tests inside.
    pub name: String,
    /// True for a test file, false for a library or program with tests inside.
    pub is_file: bool,
    path: PathBuf,
    /// The package's folder, in which cargo would run it.
    folder: PathBuf,
}

/// Builds all tests, and returns their programs. Even a single stage must test the current code.
pub(super) fn build() -> Result<Vec<Program>> {
    build::for_tests()?;
    let programs = programs_of(&artifacts::messages(&mut build::tests())?);
    if programs.is_empty() {
        bail!("cargo lists no tests");
    }
    Ok(programs)
}

/// Finds the test programs among cargo's messages.
fn programs_of(messages: &[Value]) -> Vec<Program> {
    let program = |message: &Value| -> Option<Program> {
        let is_test = message["profile"]["test"].as_bool()?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let target = &message["target"];
        let is_kind =
            |name| target["kind"].as_array().is_some_and(|it| it.iter().any(|kind| kind == name));
        is_test.then_some(())?;
        Some(Program {
            package: artifacts::package_of(message)?.to_owned(),
            name: target["name"].as_str()?.to_owned(),
            is_file: is_kind("test"),
            path: PathBuf::from(message["executable"].as_str()?),
            folder: folder.to_owned(),
        })
    };
    messages.iter().filter_map(program).collect()
}

/// The way to run test programs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    /// The number of programs side by side.
    pub at_once: usize,
    /// Run the tests that usual runs leave out, and only these.
    pub ignored: bool,
    /// Rounds of each attack; `None`: each test's usual number.
    pub rounds: Option<u32>,
}

/// Runs the programs, some of them side by side. Every other one comes from the end of the list, so that
/// both ends run first and the middle last.
pub(super) fn run(stage: &str, programs: &[Program], way: Way) -> Result<(Outcome, Counts)> {
    let libraries = library_path();
    let queue = Mutex::new(programs.iter());
    let (sender, ended) = channel();
    thread::scope(|scope| {
        for worker in 0..way.at_once {
            let (sender, queue, libraries) = (sender.clone(), &queue, &libraries);
            scope.spawn(move || {
                let next = || {
                    let mut queue = queue.lock().ok()?;
                    if worker % 2 == 0 { queue.next() } else { queue.next_back() }
                };
                while let Some(program) = next() {
                    // The receiver outlives all threads.
                    let _ = sender.send(run_one(stage, program, way, libraries));
                }
            });
        }
    });
    drop(sender);
    let mut counts = Counts::default();
    let mut failed = Vec::new();
    for done in ended {
        let (outcome, more) = judge(stage, &done?);
        counts += more;
        if let Outcome::Failed(why) = outcome {
            failed.push(why);
        }
    }
    let failed = (!failed.is_empty()).then(|| Outcome::Failed(failed.join(", ")));
    Ok((failed.unwrap_or(Outcome::Passed), counts))
}

/// Reads the output of tests, and shows failures and skips.
pub(super) fn judge(stage: &str, done: &Done) -> (Outcome, Counts) {
    for (why, count) in skips::reasons(&done.output) {
        eprintln!("{stage}: {count} SKIPPED: {why}");
    }
    let counts = Counts::of_cargo_test(&done.output);
    if done.status.success() {
        return (Outcome::Passed, counts);
    }
    eprintln!("{}", failures(&done.output));
    let why = format!("{}; see {}", done.status, done.log.display());
    let fault = done.status.signal().and_then(|_| machine::last_fault());
    (
        Outcome::Failed(fault.map_or(why.clone(), |fault| format!("{why}; the kernel: {fault}"))),
        counts,
    )
}

fn run_one(stage: &str, program: &Program, way: Way, libraries: &str) -> Result<Done> {
    let mut command = Command::new(&program.path);
    // Skips are reported in captured output.
    command.arg("--show-output").current_dir(&program.folder);
    command.args(way.ignored.then_some("--ignored"));
    command.envs(way.rounds.map(|rounds| ("CTRACE_ATTACK_ROUNDS", rounds.to_string())));
    command.env("CARGO_MANIFEST_DIR", &program.folder).env("CARGO_TARGET_DIR", paths::target());
    command.env("LD_LIBRARY_PATH", libraries).env("CTRACE_BIN", paths::tested());
    let name = match program.is_file {
        true => program.name.clone(),
        false => format!("inside {}", program.name),
    };
    progress::run(&format!("{stage}: {name}"), &mut command)
        .with_context(|| format!("{name} of {}", program.package))
}

/// Returns the library folders that tests of macros are linked with.
fn library_path() -> String {
    let sysroot = machine::output_of("rustc", &["--print", "sysroot"]).unwrap_or_default();
    let own = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    [format!("{}/lib", sysroot.trim()), own].join(":").trim_end_matches(':').to_owned()
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

    #[test]
    fn programs_of_tests_are_found_among_messages() {
        let messages = r#"
{"reason":"compiler-artifact","package_id":"path+file:///r/tests#ctrace-tests@0.1.0","manifest_path":"/r/tests/Cargo.toml","target":{"kind":["test"],"name":"attach"},"profile":{"test":true},"executable":"/t/attach-1"}
{"reason":"compiler-artifact","package_id":"path+file:///r/xtask#0.1.0","manifest_path":"/r/xtask/Cargo.toml","target":{"kind":["bin"],"name":"xtask"},"profile":{"test":true},"executable":"/t/xtask-2"}
{"reason":"compiler-artifact","package_id":"path+file:///r/xtask#0.1.0","manifest_path":"/r/xtask/Cargo.toml","target":{"kind":["bin"],"name":"xtask"},"profile":{"test":false},"executable":"/t/xtask"}
{"reason":"build-finished","success":true}"#;
        let program = |package: &str, name: &str, is_file, path: &str, folder: &str| Program {
            package: package.into(),
            name: name.into(),
            is_file,
            path: path.into(),
            folder: folder.into(),
        };
        let expected = [
            program("ctrace-tests", "attach", true, "/t/attach-1", "/r/tests"),
            program("xtask", "xtask", false, "/t/xtask-2", "/r/xtask"),
        ];
        assert_eq!(programs_of(&artifacts::parse(messages)), expected);
    }
}
