//! The programs that benchmarks trace.

use crate::{paths, progress};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Compiles one of tests/targets with the flags of a distribution.
pub(super) fn compile(source: &str) -> Result<PathBuf> {
    compile_with(source, &[])
}

/// Like [`compile`], with more flags.
pub(super) fn compile_with(source: &str, flags: &[&str]) -> Result<PathBuf> {
    compile_file(&paths::root().join("tests/targets").join(source), flags)
}

fn compile_file(source: &Path, flags: &[&str]) -> Result<PathBuf> {
    let dir = paths::target().join("bench");
    std::fs::create_dir_all(&dir)?;
    let program = dir.join(source.file_stem().context("a source has a name")?);
    let headers = paths::root().join("marker-crate/include");
    let modified = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    let sources = modified(source).max(modified(&headers.join("ctrace.h")));
    if modified(&program) > sources {
        return Ok(program);
    }
    let compiler = match source.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => "rustc",
        Some("cpp") => "g++",
        _ => "gcc",
    };
    let mut command = Command::new(compiler);
    if compiler == "rustc" {
        command.args(["--edition", "2024", "-O"]);
    } else {
        command.args(["-O2", "-g", "-fcf-protection=full", "-fno-omit-frame-pointer"]);
        command.args(["-D_GNU_SOURCE", "-pthread", "-I"]).arg(headers);
    }
    command.args(flags).arg(source).arg("-o").arg(&program);
    progress::must("compile a benchmark's program", &mut command)?;
    Ok(program)
}

/// A program of `count` functions `f0`, `f1`, … that sleeps for the seconds it is given.
pub(super) fn many(count: usize) -> Result<PathBuf> {
    generate(&format!("many{count}.c"), "", count, |i| {
        format!("__attribute__((noipa)) long f{i}(long x) {{ return x + {i}; }}")
    })
}

/// Like [`many`], with a marker scope in each function.
pub(super) fn many_scopes(count: usize) -> Result<PathBuf> {
    generate(&format!("scopes{count}.c"), "#include \"ctrace.h\"\n", count, |i| {
        format!("long f{i}(long x) {{ CTRACE_SCOPE(\"s{i}\"); return x + {i}; }}")
    })
}

fn generate(
    name: &str,
    head: &str,
    count: usize,
    function: impl Fn(usize) -> String,
) -> Result<PathBuf> {
    let dir = paths::target().join("bench");
    std::fs::create_dir_all(&dir)?;
    let source = dir.join(name);
    if !source.exists() {
        let mut text =
            format!("{head}#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n");
        for i in 0..count {
            let _ = writeln!(text, "{}", function(i));
        }
        text.push_str(
            "int main(int argc, char **argv) {\n  puts(\"ready\");\n  fflush(stdout);\n  \
             sleep(argc > 1 ? atoi(argv[1]) : 60);\n  return 0;\n}\n",
        );
        std::fs::write(&source, text)?;
    }
    compile_file(&source, &[])
}

/// A started target, killed by its id when dropped.
pub(super) struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may already be gone.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a target and waits for its line `ready`.
pub(super) fn start(program: &Path, arguments: &[&str]) -> Result<Running> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| program.display().to_string())?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("stdout is piped")?).read_line(&mut line)?;
    Ok(Running(child))
}
