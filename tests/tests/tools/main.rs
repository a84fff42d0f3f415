//! bpftrace and perf find the probes of the marker crate and the C header in a program, hit them,
//! and read the arguments. (gdb and readelf: `marker-crate/tests`.)

mod bpftrace;
mod c_header;
mod perf;

use ctrace_tests::install::install;
use ctrace_tests::targets::{Targets, program};
use std::path::PathBuf;
use tempfile::TempDir;

/// Ways to build that lay segments, semaphores and code out differently.
const RUST: [&[&str]; 4] = [
    &["-O"],
    &["-Copt-level=0"],
    &["-O", "-Clink-arg=-fuse-ld=bfd"],
    &["-O", "-Ctarget-feature=+crt-static"],
];

/// A program in its own file: a probe is on a file, whoever runs it.
struct Program {
    path: PathBuf,
    _folder: TempDir,
}

impl Program {
    fn new(source: &str, flags: &[&str]) -> Program {
        let build = program(source).flags(flags.iter().copied());
        let built = Targets::on_host().get(&build).expect("builds");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(build.file_name());
        install(&std::fs::read(built).expect("it was built"), &path);
        Program { path, _folder: folder }
    }

    fn path(&self) -> &str {
        self.path.to_str().expect("a path in UTF-8")
    }
}
