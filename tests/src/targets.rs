//! Builds the target programs in `tests/targets/`, once per set of flags.
//!
//! A program's name contains its source and flags (`counts-O2-cf-full-fp`), so a machine without a
//! compiler finds the same files in a directory prepared elsewhere.

use crate::env::{target_dir, workspace};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;

/// The place of built targets, and whether missing ones can be built.
#[derive(Clone, Debug)]
pub struct Targets {
    dir: PathBuf,
    can_build: bool,
}

/// The way to build one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// File name in `tests/targets/`.
    pub source: String,
    pub flags: Vec<String>,
    pub stripped: bool,
    /// Source of a library in `tests/targets/` that it is linked to, and finds beside itself.
    pub library: Option<String>,
    /// Replaces the usual compiler.
    pub compiler: Option<String>,
}

/// Returns a C or C++ program at -O2 with CET and frame pointers, so that entries are cheap to
/// probe.
pub fn program(source: &str) -> Build {
    Build {
        source: source.into(),
        flags: ["-O2", "-fcf-protection=full", "-fno-omit-frame-pointer"].map(Into::into).into(),
        stripped: false,
        library: None,
        compiler: None,
    }
}

impl Build {
    /// Replaces the standard flags.
    pub fn flags<'a>(mut self, flags: impl IntoIterator<Item = &'a str>) -> Self {
        self.flags = flags.into_iter().map(str::to_owned).collect();
        self
    }

    /// Adds a flag.
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.into());
        self
    }

    pub fn stripped(mut self) -> Self {
        self.stripped = true;
        self
    }

    /// Links it to this library.
    pub fn with(mut self, library: &str) -> Self {
        self.library = Some(library.into());
        self
    }

    /// Uses another C compiler.
    pub fn compiler(mut self, name: &str) -> Self {
        self.compiler = Some(name.into());
        self
    }

    /// Returns the file name of the result.
    pub fn file_name(&self) -> String {
        let (stem, extension) = self.source.rsplit_once('.').unwrap_or((&self.source, ""));
        let mut name = String::new();
        if self.is_library() {
            name.push_str(stem);
            name.push_str(".so");
            return name;
        }
        name.push_str(stem);
        if extension == "rs" {
            name.push_str("-rs");
        }
        for flag in &self.flags {
            let short =
                flag.replace("cf-protection=", "cf-").replace("no-omit-frame-pointer", "fp");
            let bare = short.strip_prefix("-f").or(short.strip_prefix('-')).unwrap_or(&short);
            let word: String =
                bare.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
            name.push('-');
            name.push_str(&word);
        }
        for word in self.library.iter().chain(&self.compiler) {
            name.push('-');
            name.push_str(word.split('.').next().unwrap_or(word));
        }
        if self.stripped {
            name.push_str("-stripped");
        }
        name
    }

    /// Returns whether it is in Rust and has scopes.
    fn uses_marker_crate(&self) -> bool {
        self.source.starts_with("marks_") && self.source.ends_with(".rs")
    }

    fn is_library(&self) -> bool {
        self.source.starts_with("lib")
    }
}

/// Serializes compilers: two tests may want the same program.
static COMPILING: Mutex<()> = Mutex::new(());

impl Targets {
    /// Uses cargo's target directory, and builds on demand.
    pub fn on_host() -> Self {
        Targets { dir: target_dir().join("test-targets"), can_build: true }
    }

    /// Builds on demand in `dir`.
    pub fn in_dir(dir: &Path) -> Self {
        Targets { dir: dir.into(), can_build: true }
    }

    /// Uses programs built elsewhere, and compiles nothing.
    pub fn prebuilt(dir: &Path) -> Self {
        Targets { dir: dir.into(), can_build: false }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of a built program.
    pub fn get(&self, build: &Build) -> Result<PathBuf> {
        let path = self.dir.join(build.file_name());
        if !self.can_build {
            return if path.exists() { Ok(path) } else { bail!("{} is missing", path.display()) };
        }
        let library = build.library.as_deref().map(|source| self.get(&program(source)));
        let library = library.transpose()?;
        let _one = COMPILING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let source = workspace().join("tests/targets").join(&build.source);
        let mut newest = modified(&source)?.max(newest_of_all()?);
        if let Some(library) = &library {
            newest = newest.max(modified(library)?);
        }
        if modified(&path).is_ok_and(|built| built > newest) {
            return Ok(path);
        }
        self.compile(build, &source, library.as_deref(), &path)?;
        Ok(path)
    }

    /// Returns a C program of `count` functions, `f0` to `f<count-1>`. `main` calls each once,
    /// unless it gets an argument (seconds to sleep instead).
    pub fn many_functions(&self, count: usize) -> Result<PathBuf> {
        self.many(&format!("many{count}"), || many_functions_source(count))
    }

    /// Like [`Self::many_functions`], with an indirect jump at the end of each function.
    pub fn many_jumps(&self, count: usize) -> Result<PathBuf> {
        self.many(&format!("jumps{count}"), || many_jumps_source(count))
    }

    fn many(&self, name: &str, text: impl Fn() -> String) -> Result<PathBuf> {
        let path = self.dir.join(name);
        if path.exists() || !self.can_build {
            return Ok(path);
        }
        let _one = COMPILING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        std::fs::create_dir_all(&self.dir)?;
        let source = self.dir.join(format!("{name}.c"));
        std::fs::write(&source, text())?;
        let build =
            program("many.c").flags(["-O1", "-fcf-protection=full", "-fno-omit-frame-pointer"]);
        self.compile(&build, &source, None, &path)?;
        Ok(path)
    }

    fn compile(
        &self,
        build: &Build,
        source: &Path,
        library: Option<&Path>,
        path: &Path,
    ) -> Result<()> {
        std::fs::create_dir_all(&self.dir)?;
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let crate_dir = tempfile::tempdir()?;
        let mut command = match source.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => rust_compiler(build, library, crate_dir.path())?,
            extension => {
                let usual = if extension == Some("cpp") { "g++" } else { "gcc" };
                let mut command = compiler(build.compiler.as_deref().unwrap_or(usual));
                command.args(&build.flags);
                if build.is_library() {
                    command.args(["-shared", "-fPIC"]);
                    command.arg(format!("-Wl,-soname,{}", build.file_name()));
                }
                if build.stripped {
                    command.arg("-s");
                }
                command
            }
        };
        command.arg(source).arg("-o").arg(&temporary);
        if let Some(library) = library.filter(|_| !build.source.ends_with(".rs")) {
            command.arg(library).arg("-Wl,-rpath,$ORIGIN");
        }
        succeed(&mut command)?;
        std::fs::rename(&temporary, path)?;
        Ok(())
    }
}

fn compiler(name: &str) -> Command {
    let mut command = Command::new(name);
    command.args(["-g", "-D_GNU_SOURCE", "-pthread", "-w", "-I"]);
    command.arg(workspace().join("marker-crate/include"));
    command
}

fn rust_compiler(build: &Build, library: Option<&Path>, crate_dir: &Path) -> Result<Command> {
    let mut command = Command::new("rustc");
    command.args(["--edition", "2024"]).args(&build.flags);
    if build.uses_marker_crate() {
        let made = marker_crate(&build.flags, crate_dir)?;
        command.arg("--extern").arg(format!("ctrace_marker={}", made.display()));
    }
    if let Some(library) = library {
        command.args(["--cfg", "linked", "-C"]).arg(format!("link-arg={}", library.display()));
        command.args(["-C", "link-arg=-Wl,-rpath,$ORIGIN"]);
    }
    Ok(command)
}

/// Builds the crate `ctrace-marker` without its attribute, which would need other crates.
fn marker_crate(flags: &[String], dir: &Path) -> Result<PathBuf> {
    let path = dir.join("libctrace_marker.rlib");
    let mut command = Command::new("rustc");
    command.args(["--edition", "2024", "--crate-type", "rlib", "--crate-name", "ctrace_marker"]);
    command.args(["--cap-lints", "allow", "--cfg", "feature=\"active\""]);
    command.args(["--cfg", "feature=\"locks\""]).args(flags);
    command.arg(workspace().join("marker-crate/src/lib.rs")).arg("-o").arg(&path);
    command.env("CARGO_PKG_VERSION", env!("CARGO_PKG_VERSION"));
    succeed(&mut command)?;
    Ok(path)
}

fn succeed(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Returns the last change of anything that many targets depend on.
fn newest_of_all() -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    let targets = workspace().join("tests/targets");
    let headers = ["count.h", "marks.h", "switch_stack.h", "jump_fcontext.h", "ready.h"];
    let headers = headers.map(|header| targets.join(header));
    let mut left = Vec::from(headers);
    left.push(workspace().join("marker-crate"));
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path)?;
            left.extend(entries.collect::<Result<Vec<_>, _>>()?.iter().map(|e| e.path()));
        } else {
            newest = newest.max(modified(&path)?);
        }
    }
    Ok(newest)
}

fn modified(path: &Path) -> Result<SystemTime> {
    std::fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .with_context(|| path.display().to_string())
}

/// A function as compilers make it. An assembler takes a second for as many as a compiler needs
/// minutes for.
const FUNCTION: &str = r#"__asm__(".macro function name number\n"
".globl \\name\n.type \\name, @function\n"
"\\name:\n.cfi_startproc\nendbr64\npush %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\n"
"mov %rsp, %rbp\n.cfi_def_cfa_register 6\nlea \\number(%rdi), %rax\n"
"pop %rbp\n.cfi_def_cfa 7, 8\nret\n.cfi_endproc\n.size \\name, . - \\name\n.endm\n");
"#;

fn many_functions_source(count: usize) -> String {
    use std::fmt::Write;
    let mut text = String::from(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nstatic volatile long sink;\n",
    );
    text.push_str(FUNCTION);
    text.push_str("__asm__(\".text\\n\"\n");
    for i in 0..count {
        let _ = writeln!(text, "\"function f{i} {i}\\n\"");
    }
    text.push_str(");\n");
    for i in 0..count {
        let _ = writeln!(text, "long f{i}(long x);");
    }
    text.push_str("static long (*const all[])(long) = {");
    for i in 0..count {
        let _ = write!(text, "f{i},");
    }
    let _ = writeln!(
        text,
        "}};\nint main(int argc, char **argv) {{\n  if (argc > 1) {{ puts(\"ready\"); fflush(stdout); \
         sleep(atoi(argv[1])); }}\n  for (int i = 0; i < {count}; i++) sink += all[i](i);\n  \
         printf(\"sum %ld\\n\", sink);\n  return 0;\n}}"
    );
    text
}

fn many_jumps_source(count: usize) -> String {
    use std::fmt::Write;
    let mut text = String::from(
        "#include <stdio.h>\nstatic long last(long x) { return x + 1; }\n\
         long (*volatile next)(long) = last;\n",
    );
    for i in 0..count {
        let _ = writeln!(
            text,
            "__attribute__((noipa, optimize(\"O2\"))) long f{i}(long x) {{ return next(x); }}"
        );
    }
    text.push_str("static long (*const all[])(long) = {");
    for i in 0..count {
        let _ = write!(text, "f{i},");
    }
    let _ = writeln!(
        text,
        "}};\nint main(void) {{\n  long sum = 0;\n  for (int i = 0; i < {count}; i++) sum += all[i](i);\n  \
         printf(\"sum %ld\\n\", sum);\n  return 0;\n}}"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_source_and_flags() {
        assert_eq!(program("counts.c").file_name(), "counts-O2-cf-full-fp");
        assert_eq!(
            program("cold.cpp").flags(["-Os", "-fcf-protection=none"]).stripped().file_name(),
            "cold-Os-cf-none-stripped"
        );
        assert_eq!(program("panic.rs").flags(["-O"]).file_name(), "panic-rs-O");
        assert_eq!(program("libplug.c").file_name(), "libplug.so");
        let linked = program("marks_linked.c").flags(["-O1"]).with("libmarked.c");
        assert_eq!(linked.file_name(), "marks_linked-O1-libmarked");
        let musl = program("counts.c").flags(["-static"]).compiler("musl-gcc");
        assert_eq!(musl.file_name(), "counts-static-musl-gcc");
    }

    #[test]
    fn a_generated_program_runs_every_function_once() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = Targets::in_dir(dir.path()).many_functions(300).expect("gcc");
        let output = Command::new(path).output().expect("run");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("sum {}\n", 299 * 300));
    }

    #[test]
    fn a_missing_prebuilt_target_is_named() {
        let error = Targets::prebuilt(Path::new("/nonexistent"))
            .get(&program("counts.c"))
            .expect_err("nothing there");
        assert!(error.to_string().contains("/nonexistent/counts-O2-cf-full-fp"), "{error}");
    }
}
