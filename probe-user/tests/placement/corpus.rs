//! Small programs built by real compilers in many ways: what flow analysis claims of them must be
//! what objdump sees.

use crate::objdump::Listing;
use crate::survey::{Tally, check_boundaries, decide, missed_returns};
use ctrace_user::testing::target::{Policy, Refusal, Returns};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One way to build one of the programs.
pub(crate) struct Build {
    pub(crate) source: &'static str,
    pub(crate) arguments: Vec<&'static str>,
}

pub(crate) const LEVELS: [&str; 5] = ["-O0", "-O1", "-O2", "-Os", "-O3"];

impl Build {
    /// All ways to build the C or C++ program.
    pub(crate) fn gcc(source: &'static str) -> Vec<Self> {
        let cet = ["-fcf-protection=full", "-fcf-protection=none"];
        let both = LEVELS.iter().flat_map(|level| cet.map(|cet| vec![*level, cet]));
        let mut builds: Vec<_> = both.map(|arguments| Self { source, arguments }).collect();
        builds.push(Self { source, arguments: vec!["-O2", "-no-pie", "-fno-pie"] });
        builds.push(Self { source, arguments: vec!["-O2", "-fno-omit-frame-pointer", "-fno-plt"] });
        builds
    }

    pub(crate) fn rustc() -> Vec<Self> {
        let build = |level| Self {
            source: "rust.rs",
            arguments: vec!["-C", "codegen-units=1", "-C", level],
        };
        let flags = ["opt-level=0", "opt-level=1", "opt-level=2", "opt-level=3", "opt-level=s"];
        flags.map(build).into()
    }

    /// Compiles into `folder`; `None` where there is no such compiler.
    pub(crate) fn run(&self, folder: &Path) -> Option<PathBuf> {
        let source =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/placement/corpus").join(self.source);
        let compiler = match self.source {
            "c.c" | "coroutine.c" => "gcc",
            "cpp.cpp" => "g++",
            _ => "rustc",
        };
        let program = folder.join(format!("{}{}", self.source, self.arguments.join("")));
        let mut command = Command::new(compiler);
        command.args(&self.arguments).arg("-o").arg(&program).arg(&source);
        if compiler != "rustc" {
            command.args(["-pthread", "-w"]);
        }
        let Ok(output) = command.output() else {
            println!("skipped: no {compiler} here");
            return None;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(program)
    }
}

fn check(builds: Vec<Build>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for build in builds {
        let Some(program) = build.run(folder.path()) else { return };
        let data = std::fs::read(&program).expect("the program is there");
        let policy = Policy { returns: Returns::RetSites, ..Policy::default() };
        let functions = decide(&data, &policy);
        let tally = Tally::of(&functions);
        tally.print(&program);
        let listing = Listing::of(&program);
        check_boundaries(&data, &functions, &listing);
        let missed = missed_returns(&data, &functions, &listing);
        assert!(missed.is_empty(), "{:?}: missed {missed:?}", build.arguments);
        for function in &functions {
            if function.name.contains(".cold") {
                assert_eq!(function.decision, Err(Refusal::Part), "{}", function.name);
            }
            if matches!(function.name.as_str(), "_start" | "_init" | "_fini") {
                assert!(function.decision.is_err(), "{}", function.name);
            }
        }
        for (why, names) in &tally.unseen {
            assert_eq!(why, "its first instruction is a way out of it", "{names:?}");
        }
    }
}

#[test]
fn c_programs() {
    check(Build::gcc("c.c"));
}

#[test]
fn cpp_programs() {
    check(Build::gcc("cpp.cpp"));
}

#[test]
fn rust_programs() {
    check(Build::rustc());
}
