//! The corpus on the running kernel, with probes on everything: the same output and exit status.
//!
//! A small C program attaches, so that nothing but placement is under test.

use crate::corpus::Build;
use crate::survey::decide;
use ctrace_user::target::place::{Policy, Returns};
use ctrace_user::target::plan::ExitPlacement;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Bench {
    folder: tempfile::TempDir,
    attach: PathBuf,
}

impl Bench {
    fn new() -> Option<Self> {
        // A file of root's with no permissions opens for root only.
        if !std::fs::read_to_string("/proc/self/status")
            .is_ok_and(|text| text.contains("Uid:\t0\t"))
        {
            println!("skipped: probes need root");
            return None;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let attach = folder.path().join("attach");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/placement/attach.c");
        let built = Command::new("gcc").arg("-O1").arg("-o").arg(&attach).arg(source).status();
        if !built.is_ok_and(|status| status.success()) {
            println!("skipped: no gcc or no kernel headers here");
            return None;
        }
        Some(Self { folder, attach })
    }

    /// The command under probes; `None` where the kernel has no multi links.
    fn run(&self, how: &str, sites: &str, command: &[&Path]) -> Option<Output> {
        let file = self.folder.path().join("sites");
        std::fs::write(&file, sites).expect("sites are written");
        let mut run = Command::new(&self.attach);
        let output = run.arg(&file).arg(how).args(command).output().expect("attach runs");
        if output.status.code() == Some(98) {
            println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        Some(output)
    }

    fn hits(&self) -> u64 {
        let text = std::fs::read_to_string(self.folder.path().join("sites.hits"));
        text.expect("hits are counted").parse().expect("a number")
    }
}

/// All sites of an object, in `attach`'s format.
fn sites(path: &Path, policy: &Policy) -> String {
    let data = std::fs::read(path).expect("the object is there");
    let (mut entries, mut returns) = (String::new(), String::new());
    let shown = path.display();
    for function in decide(&data, policy) {
        let Ok(placement) = function.decision else { continue };
        _ = writeln!(entries, "e {} {shown}", placement.entry.offset);
        match placement.exit {
            ExitPlacement::ReturnProbe => {
                _ = writeln!(returns, "r {} {shown}", placement.entry.offset);
            }
            ExitPlacement::Sites(sites) => {
                for site in sites {
                    _ = writeln!(entries, "e {} {shown}", site.offset);
                }
            }
            ExitPlacement::Unseen(_) => {}
        }
    }
    entries + &returns
}

fn same(bench: &Bench, program: &Path, sites: &str, what: &str) {
    let plain = Command::new(program).output().expect("the program runs");
    let Some(traced) = bench.run("run", sites, &[program]) else { return };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&traced.stderr), text(&plain.stderr), "{}: {what}", program.display());
    assert_eq!(text(&traced.stdout), text(&plain.stdout), "{}: {what}", program.display());
    assert_eq!(traced.status.code(), plain.status.code(), "{}: {what}", program.display());
    println!(
        "{}: {what}: {} hits at {} sites",
        program.display(),
        bench.hits(),
        sites.lines().count()
    );
    assert!(bench.hits() > 1000, "{}: {what}: no probe fires", program.display());
}

fn check(builds: Vec<Build>, unwinds: bool, libraries: &[&str]) {
    let Some(bench) = Bench::new() else { return };
    let nop5_optimised = true;
    let policy = |returns| Policy {
        returns,
        unwinding_possible: unwinds,
        nop5_optimised,
        ..Policy::default()
    };
    let libraries = |policy: &Policy| -> String {
        let present = libraries.iter().map(Path::new).filter(|path| path.exists());
        present.map(|path| sites(path, policy)).collect()
    };
    let auto = policy(Returns::Auto);
    let ret_sites = policy(Returns::RetSites);
    let (auto_libraries, ret_libraries) = (libraries(&auto), libraries(&ret_sites));
    for build in builds {
        let Some(program) = build.run(bench.folder.path()) else { return };
        same(&bench, &program, &(sites(&program, &auto) + &auto_libraries), "auto");
        same(&bench, &program, &(sites(&program, &ret_sites) + &ret_libraries), "ret sites");
    }
}

const LIBC: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";
const LIBSTDCPP: &str = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";
const LIBCRYPTO: &str = "/usr/lib/x86_64-linux-gnu/libcrypto.so.3";
const LIBGCC: &str = "/lib/x86_64-linux-gnu/libgcc_s.so.1";

#[test]
fn c_programs_and_library() {
    check(Build::gcc("c.c"), false, &[LIBC]);
}

#[test]
fn cpp_programs_and_libraries() {
    check(Build::gcc("cpp.cpp"), true, &[LIBC, LIBSTDCPP, LIBGCC]);
}

#[test]
fn rust_programs() {
    check(Build::rustc(), true, &[LIBC, LIBGCC]);
}

/// The kernel takes every site of these objects. It tells only where the object is mapped: later
/// it fails in silence.
#[test]
fn kernel_accepts_all_sites() {
    let Some(bench) = Bench::new() else { return };
    let redis = [Path::new("/usr/bin/redis-server"), Path::new("--port 0")];
    for object in [LIBC, LIBSTDCPP, LIBGCC, LIBCRYPTO, "/usr/bin/redis-server"] {
        let Ok(path) = std::fs::canonicalize(object) else {
            println!("skipped: no {object} here");
            continue;
        };
        let policy = Policy { returns: Returns::RetSites, ..Policy::default() };
        let sites = sites(&path, &policy);
        let preload = format!("LD_PRELOAD={object}");
        let sleep = [Path::new("env"), Path::new(&preload), Path::new("sleep"), Path::new("5")];
        let command = if object.ends_with("redis-server") { &redis[..] } else { &sleep[..] };
        let Some(output) = bench.run("hold", &sites, command) else { return };
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{object}: {complaint}");
    }
}
