//! Executable files for tests to run.
//!
//! A process that writes a program itself may not be able to run it: another thread's child may
//! hold the descriptor between its fork and its exec, and the kernel answers "text file busy". So a
//! child writes the file, and we never have a descriptor of it.

#![allow(unreachable_pub, reason = "a private module where other crates include this file")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes an executable file of these bytes.
pub fn install(bytes: &[u8], to: &Path) {
    // Some small machines lack /dev/stdin.
    let mut command = Command::new("install");
    command.args(["-m", "755", "/proc/self/fd/0"]).arg(to).stdin(Stdio::piped());
    let mut child = command.spawn().expect("install(1) is there");
    let mut pipe = child.stdin.take().expect("a pipe");
    let written = pipe.write_all(bytes);
    drop(pipe);
    let status = child.wait().expect("install ends");
    assert!(written.is_ok() && status.success(), "install {}: {status}", to.display());
}
