//! Compiles small programs for tests and provides the files of the machine that tests need.

#[path = "../../../tests/src/install.rs"]
mod install;
#[path = "../../../tests/src/loader_takeover.rs"]
pub(super) mod loader_takeover;

pub(crate) use install::install;

use super::object::Object;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A compiled program in a directory of its own.
pub(crate) struct Built {
    dir: tempfile::TempDir,
    pub(crate) program: PathBuf,
}

impl Built {
    pub(crate) fn object(&self) -> Object {
        Object::open(&self.program, &self.program).unwrap()
    }

    pub(crate) fn dir(&self) -> &Path {
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
    // The stable compiler calls the choice of the old mangling unstable.
    tool.args(words).current_dir(dir).env("RUSTC_BOOTSTRAP", "1");
    let output = tool.output().unwrap_or_else(|error| panic!("{command}: {error}"));
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles `input.EXTENSION` with a compiler and its flags.
pub(crate) fn compile(compiler: &str, extension: &str, source: &str) -> Built {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(format!("input.{extension}")), source).unwrap();
    run(dir.path(), &format!("{compiler} -o program input.{extension}"));
    let program = dir.path().join("program");
    Built { dir, program }
}

/// Returns whether programs with USDT probes of `sys/sdt.h` can be compiled. If not, it says so.
pub(crate) fn has_sdt_header() -> bool {
    let paths = ["/usr/include/sys/sdt.h", "/usr/include/x86_64-linux-gnu/sys/sdt.h"];
    let found = paths.iter().any(|path| Path::new(path).exists());
    if !found {
        eprintln!("skipped: sys/sdt.h is missing (systemtap-sdt-dev)");
    }
    found
}

/// Opens the libc of this test process.
pub(super) fn system_libc() -> Object {
    let objects = super::process::maps::objects(std::process::id()).unwrap();
    let libc = objects.iter().find(|object| object.name.starts_with("libc.so")).unwrap();
    Object::open_mapped(libc).unwrap()
}

/// Hand-written markers for a C program, as in docs/marker-format.md. `SCOPE(NAME, GROUP, FLAGS)`
/// goes into a function, with texts or `NONE`; `RUNTIME` goes outside all functions.
pub(crate) const MARKERS: &str = r#"
    #define NONE ""
    #define STRING_(x) #x
    #define STRING(x) STRING_(x)
    #define SECTION(name, flags, content) ".pushsection " name ",\"" flags "\"\n" content ".popsection\n"
    #define TEXT(label, text) label ": .asciz \"" text "\"\n"
    /* The distance to a text, or none where that is empty. */
    #define REFER(label, text) ".ifnes \"" text "\",\"\"\n.4byte " label "b - .\n.else\n.4byte 0\n.endif\n"
    #ifndef PROBES
    #define PROBES ".pushsection .probes,\"aw\"\n"
    #endif
    #define SCOPE(name, group, flags) __asm__ volatile( \
        "990: nop\n" \
        SECTION(".text.ctrace_points", "ax", "991: nop\n") \
        PROBES ".balign 2\n992: .2byte 0\n.popsection\n" \
        SECTION(".rodata.ctrace", "a", TEXT("10", name) TEXT("20", __FILE__) TEXT("30", group)) \
        SECTION("ctrace_sites", "a", ".balign 32\n.byte 1, " #flags ", 0, 0\n.4byte " STRING(__LINE__) "\n" \
            REFER("10", name) REFER("20", __FILE__) REFER("30", group) \
            ".4byte 992b - ., 991b - ., 990b - .\n"))
    #define NOPS ".byte 0x90, 0x0f, 0x1f, 0x44, 0, 0, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\nret\n"
    #define RUNTIME_ENTRY SECTION("ctrace_runtime", "a", ".balign 32\n.4byte 1\n.4byte flush_site - .\n" \
        ".4byte register_site - ., list_head - ., runtime_name - .\n.zero 12\n")
    #define RUNTIME __asm__( \
        SECTION(".text", "ax", ".balign 16\nflush_site: " NOPS ".balign 16\nregister_site: " NOPS) \
        SECTION(".bss", "aw", ".balign 8\nlist_head: .zero 8\n") \
        SECTION(".rodata", "a", "runtime_name: .asciz \"test 1.0\"\n") \
        RUNTIME_ENTRY RUNTIME_ENTRY);
"#;
