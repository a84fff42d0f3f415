//! Tests `include/ctrace.h` and `include/ctrack_compat.hpp`. Available compilers compile small
//! programs (in `tests/c`) in many ways and run them. Their files are compared with
//! docs/marker-format.md. A test without its compiler says so.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod behaviour;
mod elf;
mod layout;
mod sections;
mod tables;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const C: &[&str] = &["-std=c11"];
const CXX: &[&str] = &["-xc++", "-std=c++17"];
/// A compiler, the flags of its language, and the ways in which a test compiles with it.
type Compiler = (&'static str, &'static [&'static str], &'static [&'static [&'static str]]);
const COMPILERS: &[Compiler] =
    &[("gcc", C, WAYS), ("g++", CXX, CXX_WAYS), ("clang", C, WAYS), ("clang++", CXX, CXX_WAYS)];
const STRICT: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: there is no {program}");
    }
    there
}

/// Compiles programs into a folder of its own.
struct Build {
    out: tempfile::TempDir,
}

impl Build {
    fn new() -> Self {
        Build { out: tempfile::tempdir().expect("a temporary folder") }
    }

    fn command(
        &self,
        compiler: &str,
        flags: &[&[&str]],
        sources: &[&str],
        name: &str,
    ) -> (Command, PathBuf) {
        let out = self.out.path().join(name);
        let mut command = Command::new(compiler);
        command.current_dir(folder().join("tests/c")).arg("-I../../include").args(flags.concat());
        command.args(sources).arg("-o").arg(&out);
        (command, out)
    }

    /// Builds the program. Warnings are errors.
    #[track_caller]
    fn program(&self, compiler: &str, flags: &[&[&str]], sources: &[&str]) -> PathBuf {
        let name = sources[0].split('.').next().expect("a name");
        let (mut command, out) =
            self.command(compiler, &[flags, &[STRICT]].concat(), sources, name);
        let output = command.output().expect("the compiler runs");
        assert!(
            output.status.success(),
            "{command:?}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        out
    }
}

#[track_caller]
fn run(program: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).output().expect("it runs");
    assert!(
        output.status.success(),
        "{program:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The ways to compile and link programs.
const WAYS: &[&[&str]] = &[
    &["-O0"],
    &["-O1"],
    &["-O2", "-fPIC", "-pie"],
    &["-O3", "-march=x86-64-v3"],
    &["-Os", "-fno-pie", "-no-pie"],
    &["-O2", "-static"],
    &["-O2", "-fPIE", "-static-pie"],
    &["-O2", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"],
    &["-O2", "-flto"],
    &["-O2", "-fno-omit-frame-pointer", "-fcf-protection"],
    &["-O2", "-DCTRACE_NO_LINK_ORDER", "-DCTRACE_TLS_MODEL=\"global-dynamic\"", "-fPIC"],
];

/// The ways in which C++ differs: its inline functions lie in groups of sections, of which a linker
/// keeps one. The code itself comes from the same part of the compiler as that of C.
const CXX_WAYS: &[&[&str]] = &[WAYS[0], WAYS[7], WAYS[8], WAYS[10]];
