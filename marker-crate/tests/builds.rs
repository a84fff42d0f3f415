//! Tests the crate in programs and libraries built in many ways. Each checks its own markers when
//! run.
//!
//! Calls rustc itself, with as few options as each case needs; needs no network and no cargo.

use object::{Object, ObjectSection};
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

struct Build {
    folder: PathBuf,
    /// Flags for both the crate and the program.
    flags: Vec<String>,
    active: bool,
    /// True if the crate has its feature `locks`.
    locks: bool,
}

impl Build {
    fn new(name: &str, flags: &str) -> Build {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let flags = flags.split_whitespace().map(str::to_owned).collect();
        Build { folder, flags, active: true, locks: false }
    }

    fn rustc(&self, source: &str) -> Command {
        let mut rustc = Command::new(std::env::var("RUSTC").unwrap_or("rustc".into()));
        rustc.current_dir(env!("CARGO_MANIFEST_DIR")).arg(source).args(&self.flags);
        rustc.args(["--edition", "2024", "-A", "unexpected_cfgs", "--out-dir"]).arg(&self.folder);
        rustc.arg("-L").arg(&self.folder);
        rustc.env("CARGO_PKG_VERSION", "0.1.0").env("CTRACE_MARKER_OFF", "test,dev");
        rustc
    }

    /// Builds the crate as a library. Returns the option that makes it known to its user.
    fn marker(&self, metadata: &str) -> String {
        let mut rustc = self.rustc("src/lib.rs");
        rustc.args(["--crate-type", "rlib", "--crate-name", "ctrace_marker"]);
        rustc.arg(format!("-Cmetadata={metadata}")).arg(format!("-Cextra-filename=-{metadata}"));
        if self.locks {
            rustc.args(["--cfg", "feature=\"locks\""]);
        }
        if self.active {
            rustc.args(["--cfg", "feature=\"active\""]);
        } else {
            let mut macros = self.rustc("macros/src/lib.rs");
            succeed(macros.args([
                "--extern=proc_macro",
                "--crate-type=proc-macro",
                "--crate-name=ctrace_marker_macros",
            ]));
            let macros = self.folder.join("libctrace_marker_macros.so");
            rustc.arg("--extern").arg(format!("ctrace_marker_macros={}", macros.display()));
        }
        succeed(&mut rustc);
        format!("ctrace_marker={}/libctrace_marker-{metadata}.rlib", self.folder.display())
    }

    fn program(&self, flags: &str) -> PathBuf {
        let mut rustc = self.rustc("tests/programs/check.rs");
        rustc.args(["--extern", &self.marker("a")]).args(flags.split_whitespace());
        succeed(&mut rustc);
        self.folder.join("check")
    }

    /// Builds and runs a program, and compares its output.
    fn check(name: &str, flags: &str, of_program: &str) -> PathBuf {
        let program = Build::new(name, flags).program(of_program);
        assert_eq!(run(&mut Command::new(&program)), "fine, 9 entries\n");
        program
    }
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{error}", output.status);
    output
}

fn run(command: &mut Command) -> String {
    String::from_utf8(succeed(command).stdout).unwrap()
}

fn has_target(target: &str) -> bool {
    let output = run(Command::new("rustc").args(["--print", "target-libdir", "--target", target]));
    Path::new(output.trim()).exists()
}

#[test]
fn not_optimized() {
    Build::check("debug", "-g", "");
}

#[test]
fn optimized_for_size() {
    Build::check("size", "-Copt-level=z", "");
}

#[test]
fn link_time_optimization_fat() {
    Build::check("fat", "-Copt-level=3", "-Clto=fat -Ccodegen-units=1");
}

#[test]
fn link_time_optimization_thin() {
    Build::check("thin", "-Copt-level=3", "-Clto=thin");
}

#[test]
fn one_codegen_unit() {
    Build::check("one", "-Copt-level=2 -Ccodegen-units=1", "");
}

#[test]
fn many_codegen_units() {
    Build::check("many", "-Copt-level=1 -Ccodegen-units=256", "");
}

#[test]
fn at_a_fixed_address() {
    Build::check("fixed", "-O -Crelocation-model=static", "");
}

#[test]
fn statically_linked_and_moved() {
    Build::check("static-pie", "-O -Ctarget-feature=+crt-static", "");
}

#[test]
fn with_musl() {
    let target = "x86_64-unknown-linux-musl";
    if !has_target(target) {
        println!("skipped: no standard library for {target}");
        return;
    }
    Build::check("musl", &format!("-O --target={target}"), "");
}

#[test]
fn with_the_linker_of_binutils() {
    if Command::new("ld.bfd").arg("--version").output().is_err() {
        println!("skipped: no ld.bfd");
        return;
    }
    let program = Build::check("bfd", "-O", "-Clink-arg=-fuse-ld=bfd -Clink-arg=-Wl,--gc-sections");
    assert!(!holds(&program, b"never called"));
}

/// Nothing refers to the crate's own code here. Semaphores that share a page of the file with
/// another segment would be raised there.
#[test]
fn a_program_with_a_usdt_probe_and_nothing_else() {
    for linker in ["", "bfd", "lld"] {
        let build = Build::new(&format!("bare{linker}"), "");
        let marker = build.marker("a");
        let mut rustc = build.rustc("tests/programs/bare.rs");
        rustc.args(["--extern", &marker]);
        if !linker.is_empty() {
            if Command::new(format!("ld.{linker}")).arg("--version").output().is_err() {
                println!("skipped: no ld.{linker}");
                continue;
            }
            rustc.arg(format!("-Clink-arg=-fuse-ld={linker}"));
        }
        succeed(&mut rustc);
        let data = std::fs::read(build.folder.join("bare")).unwrap();
        let file = object::File::parse(&*data).unwrap();
        assert!(file.section_by_name("ctrace_runtime").is_none());
        let probes = file.section_by_name(".probes").unwrap();
        let (offset, _) = probes.file_range().unwrap();
        assert_eq!((probes.address() % 4096, offset % 4096), (0, 0), "{linker}");
    }
}

#[test]
fn for_this_processor() {
    Build::check("native", "-O -Ctarget-cpu=native", "");
}

fn holds(program: &Path, text: &[u8]) -> bool {
    std::fs::read(program).unwrap().windows(text.len()).any(|window| window == text)
}

#[test]
fn what_the_linker_drops_and_what_the_build_leaves_out_is_not_there() {
    let program = Build::check("dropped", "-O -Cstrip=symbols", "");
    assert!(holds(&program, b"plain \"{}\" \\\0"));
    assert!(!holds(&program, b"never called"));
    assert!(!holds(&program, b"compiled out"));
}

/// A library with its own copy of the crate.
#[test]
fn a_library_that_is_loaded_and_closed() {
    let build = Build::new("loaded", "-O");
    let mut rustc = build.rustc("tests/programs/check.rs");
    rustc.args(["--crate-type=cdylib", "--cfg=library", "--extern", &build.marker("a")]);
    succeed(&mut rustc);
    succeed(&mut build.rustc("tests/programs/load.rs"));
    let library = build.folder.join("libcheck.so");
    let output = run(Command::new(build.folder.join("load")).arg(library));
    assert_eq!(output, "fine, 9 entries\nfine, 9 entries\n");
}

/// Nothing keeps this library in memory: it goes before the thread that used it.
#[test]
fn a_library_that_is_gone_before_the_thread() {
    let build = Build::new("gone", "-O -Cpanic=abort");
    let mut rustc = build.rustc("tests/programs/small.rs");
    succeed(rustc.args(["--crate-type=cdylib", "--extern", &build.marker("a")]));
    succeed(build.rustc("tests/programs/load.rs").arg("--cfg=gone"));
    let library = build.folder.join("libsmall.so");
    let output = run(Command::new(build.folder.join("load")).arg(library));
    assert_eq!(output, "fine, 1 entries\nfine, 1 entries\n");
}

/// The user of a `dylib` instantiates its generic functions, but not their statics.
#[test]
fn a_rust_dylib_with_generic_scopes() {
    let build = Build::new("dylib", "-O -Cprefer-dynamic -Crpath");
    let marker = build.marker("a");
    let mut rustc = build.rustc("tests/programs/generic.rs");
    succeed(rustc.args(["--crate-type=dylib", "--extern", &marker]));
    let mut rustc = build.rustc("tests/programs/uses.rs");
    rustc.arg("-L").arg(&build.folder).arg("--extern");
    rustc.arg(format!("generic={}/libgeneric.so", build.folder.display()));
    succeed(&mut rustc);
    let mut program = Command::new(build.folder.join("uses"));
    program.env("LD_LIBRARY_PATH", &build.folder);
    assert_eq!(run(&mut program), "fine\n");
}

#[test]
fn two_versions_in_one_program() {
    for (name, flags) in [("two", "-O"), ("two-fat", "-O -Clto=fat -Ccodegen-units=1")] {
        let build = Build::new(name, "");
        let (a, b) = (build.marker("a"), build.marker("b"));
        let mut rustc = build.rustc("tests/programs/other.rs");
        succeed(rustc.args(["--crate-type=rlib", "--extern", &b]).arg("-L").arg(&build.folder));
        let mut rustc = build.rustc("tests/programs/check.rs");
        rustc.args(["--cfg=other", "--extern", &a]).args(flags.split_whitespace());
        rustc.arg(format!("--extern=other={}/libother.rlib", build.folder.display()));
        succeed(rustc.arg("-L").arg(&build.folder));
        let output = run(&mut Command::new(build.folder.join("check")));
        assert_eq!(output, "fine, 10 entries\n", "{name}");
    }
}

/// Without the feature, the code equals that without markers.
#[test]
fn switched_off_it_compiles_to_nothing() {
    let mut build = Build::new("nothing", "-Copt-level=3");
    build.active = false;
    let marker = build.marker("a");
    let assembly = |marked: &[&str]| {
        let mut rustc = build.rustc("tests/programs/same.rs");
        rustc.args(["--crate-type=lib", "--emit=asm", "-Cmetadata=same", "--extern", &marker]);
        succeed(rustc.args(marked));
        std::fs::read_to_string(build.folder.join("same.s")).unwrap()
    };
    let with = assembly(&["--cfg=marked", "--cfg=attribute"]);
    assert_eq!(with, assembly(&[]));
    assert!(with.contains("work"));
}

#[test]
fn switched_off_the_attribute_leaves_everything_as_it_is() {
    let mut build = Build::new("off", "");
    build.active = false;
    let marker = build.marker("a");
    succeed(build.rustc("tests/programs/off.rs").args(["--extern", &marker]));
    assert_eq!(run(&mut Command::new(build.folder.join("off"))), "6\n");
}

#[test]
fn for_another_processor_it_compiles_to_nothing() {
    let target = "aarch64-unknown-linux-gnu";
    let build = Build::new("aarch64", &format!("-O --target={target}"));
    if !has_target(target) {
        println!("skipped: no standard library for {target}");
        return;
    }
    let marker = build.marker("a");
    let mut rustc = build.rustc("tests/programs/same.rs");
    rustc.args(["--crate-type=lib", "--cfg=marked", "--extern", &marker]);
    succeed(&mut rustc);
}

#[test]
fn a_program_that_forbids_unsafe_code() {
    for active in [true, false] {
        let mut build = Build::new(&format!("forbids-{active}"), "");
        build.active = active;
        let marker = build.marker("a");
        succeed(build.rustc("tests/programs/forbids.rs").args(["--extern", &marker]));
        assert_eq!(run(&mut Command::new(build.folder.join("forbids"))), "6\n");
    }
}

/// Whoever gives a text to a scope is told where texts go.
#[test]
fn a_text_is_no_value_of_a_scope_and_the_compiler_says_what_takes_texts() {
    for active in [true, false] {
        let mut build = Build::new(&format!("text-{active}"), "");
        build.active = active;
        let marker = build.marker("a");
        let output = build.rustc("tests/programs/text.rs").args(["--extern", &marker]).output();
        let output = output.unwrap();
        assert!(!output.status.success());
        let told = String::from_utf8(output.stderr).unwrap();
        let errors: Vec<&str> = told.lines().filter(|line| line.starts_with("error[")).collect();
        let says_so = "`String` is no value of a scope: values are numbers; texts go into message!";
        assert!(matches!(errors[..], [only] if only.ends_with(says_so)), "{told}");
    }
}

/// Locks are those of the standard library, whether there are markers or not.
#[test]
fn locks_work_with_and_without_markers() {
    for (name, active, flags) in
        [("locks", true, "-O"), ("locks-debug", true, "-g"), ("locks-off", false, "-O")]
    {
        let mut build = Build::new(name, flags);
        (build.active, build.locks) = (active, true);
        let marker = build.marker("a");
        succeed(build.rustc("tests/programs/locks.rs").args(["--extern", &marker]));
        let program = build.folder.join("locks");
        assert_eq!(run(&mut Command::new(&program)), "fine\n", "{name}");
        let file = std::fs::read(program).unwrap();
        let file = object::File::parse(&*file).unwrap();
        assert_eq!(file.section_by_name("ctrace_sites").is_some(), active, "{name}");
    }
}
