//! Builds the target programs in `tests/targets/`, once per set of flags.
//!
//! A built program's name tells its source and flags (`counts-O2-cf-full-fp`), so a machine without a
//! compiler finds the same files in a directory prepared elsewhere.

use crate::env::{target_dir, workspace};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;

/// Where built targets are, and whether missing ones can be built.
#[derive(Clone, Debug)]
pub struct Targets {
    dir: PathBuf,
    can_build: bool,
}

/// How to build one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// File name in `tests/targets/`.
    pub source: String,
    pub flags: Vec<String>,
    pub stripped: bool,
}

/// A C or C++ program at -O2 with CET and frame pointers, so that entries are cheap to probe.
pub fn program(source: &str) -> Build {
    Build {
        source: source.into(),
        flags: ["-O2", "-fcf-protection=full", "-fno-omit-frame-pointer"].map(Into::into).into(),
        stripped: false,
    }
}

impl Build {
    /// Other flags instead of the standard ones.
    pub fn flags<'a>(mut self, flags: impl IntoIterator<Item = &'a str>) -> Self {
        self.flags = flags.into_iter().map(str::to_owned).collect();
        self
    }

    /// One more flag.
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.into());
        self
    }

    pub fn stripped(mut self) -> Self {
        self.stripped = true;
        self
    }

    /// File name of the result.
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
        if self.stripped {
            name.push_str("-stripped");
        }
        name
    }

    fn is_library(&self) -> bool {
        self.source.starts_with("lib")
    }
}

/// One compiler at a time: two tests may want the same program.
static COMPILING: Mutex<()> = Mutex::new(());

impl Targets {
    /// In cargo's target directory, built on demand.
    pub fn on_host() -> Self {
        Targets { dir: target_dir().join("test-targets"), can_build: true }
    }

    /// Built on demand in `dir`.
    pub fn in_dir(dir: &Path) -> Self {
        Targets { dir: dir.into(), can_build: true }
    }

    /// Built elsewhere; nothing is compiled.
    pub fn prebuilt(dir: &Path) -> Self {
        Targets { dir: dir.into(), can_build: false }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of a built program.
    pub fn get(&self, build: &Build) -> Result<PathBuf> {
        let path = self.dir.join(build.file_name());
        if !self.can_build {
            return if path.exists() { Ok(path) } else { bail!("{} is missing", path.display()) };
        }
        let _one = COMPILING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let sources = workspace().join("tests/targets");
        let source = sources.join(&build.source);
        let newest = modified(&source)?.max(modified(&sources.join("count.h"))?);
        if modified(&path).is_ok_and(|built| built > newest) {
            return Ok(path);
        }
        self.compile(build, &source, &path)?;
        Ok(path)
    }

    /// A C program of `count` functions, `f0` to `f<count-1>`, called once each by `main` unless it
    /// is given an argument (seconds to sleep instead).
    pub fn many_functions(&self, count: usize) -> Result<PathBuf> {
        self.many(&format!("many{count}"), || many_functions_source(count))
    }

    /// The same, and each function ends in an indirect jump.
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
        self.compile(&build, &source, &path)?;
        Ok(path)
    }

    fn compile(&self, build: &Build, source: &Path, path: &Path) -> Result<()> {
        std::fs::create_dir_all(&self.dir)?;
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let mut command = match source.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => {
                let mut command = Command::new("rustc");
                command.args(["--edition", "2024"]);
                command
            }
            Some("cpp") => compiler("g++"),
            _ => compiler("gcc"),
        };
        command.args(&build.flags);
        if build.is_library() {
            command.args(["-shared", "-fPIC"]);
        }
        if build.stripped {
            command.arg("-s");
        }
        command.arg(source).arg("-o").arg(&temporary);
        let output = command.output().with_context(|| format!("starting {command:?}"))?;
        if !output.status.success() {
            bail!("{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        std::fs::rename(&temporary, path)?;
        Ok(())
    }
}

fn compiler(name: &str) -> Command {
    let mut command = Command::new(name);
    command.args(["-g", "-D_GNU_SOURCE", "-pthread", "-w"]);
    command
}

fn modified(path: &Path) -> Result<SystemTime> {
    std::fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .with_context(|| path.display().to_string())
}

fn many_functions_source(count: usize) -> String {
    use std::fmt::Write;
    let mut text = String::from(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nstatic volatile long sink;\n",
    );
    for i in 0..count {
        let _ = writeln!(text, "__attribute__((noipa)) long f{i}(long x) {{ return x + {i}; }}");
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
