//! Small programs that the tests compile, and what else they need from the machine.

#[path = "../../../tests/src/install.rs"]
mod install;

pub(super) use install::install;

use super::object::Object;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiled program in a directory of its own.
pub(super) struct Built {
    dir: tempfile::TempDir,
    pub(super) program: PathBuf,
}

impl Built {
    pub(super) fn object(&self) -> Object {
        Object::open(&self.program, &self.program).unwrap()
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Runs a tool in the directory.
    pub(super) fn run(&self, command: &str) {
        run(self.dir(), command);
    }
}

fn run(dir: &Path, command: &str) {
    let mut words = command.split_ascii_whitespace();
    let mut tool = Command::new(words.next().unwrap());
    // On the stable compiler, choosing the old mangling is called unstable.
    tool.args(words).current_dir(dir).env("RUSTC_BOOTSTRAP", "1");
    let output = tool.output().unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles `input.EXTENSION` with a compiler and its flags.
pub(super) fn compile(compiler: &str, extension: &str, source: &str) -> Built {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(format!("input.{extension}")), source).unwrap();
    run(dir.path(), &format!("{compiler} -o program input.{extension}"));
    let program = dir.path().join("program");
    Built { dir, program }
}

/// The libc of this very test.
pub(super) fn system_libc() -> Object {
    let objects = super::maps::objects(std::process::id()).unwrap();
    let libc = objects.iter().find(|object| object.name.starts_with("libc.so")).unwrap();
    Object::open_mapped(libc).unwrap()
}
