//! The corpus on the running kernel, with probes on everything: the same output and exit status.
//!
//! A small C program attaches, so that nothing but placement is under test.

use crate::corpus::Build;
use crate::survey::{decide, redis_server};
use ctrace_user::testing::target::{ExitPlacement, Placement, Policy, Returns};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock};

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

    fn counts(&self) -> Counts {
        let text = std::fs::read_to_string(self.folder.path().join("sites.hits"));
        let text = text.expect("hits are counted");
        let mut numbers = text.lines().map(|line| line.parse().expect("a number"));
        let mut next = || numbers.next().expect("three numbers");
        Counts { hits: next(), calls: next(), ended: next() }
    }
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    hits: u64,
    calls: u64,
    /// Calls that ended at a way out with the stack pointer they began with.
    ended: u64,
}

/// All sites of an object, in `attach`'s format. Most of the time of these tests is spent here, and
/// several ask for the same libraries.
fn sites(path: &Path, policy: &Policy) -> String {
    type Known = BTreeMap<(PathBuf, String), Arc<OnceLock<String>>>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let key = (path.to_owned(), format!("{policy:?}"));
    let known = Arc::clone(KNOWN.lock().expect("no panic").entry(key).or_default());
    known.get_or_init(|| sites_of(path, policy, |_| true)).clone()
}

fn sites_of(path: &Path, policy: &Policy, wanted: fn(&Placement) -> bool) -> String {
    let data = std::fs::read(path).expect("the object is there");
    let (mut entries, mut returns) = (String::new(), String::new());
    let shown = path.display();
    for (number, function) in decide(&data, policy).into_iter().enumerate() {
        let (begins, ends) = (number * 2, number * 2 + 1);
        let Ok(placement) = function.decision else { continue };
        if !wanted(&placement) {
            continue;
        }
        _ = writeln!(entries, "e {} {begins} {shown}", placement.entry.offset);
        match placement.exit {
            ExitPlacement::ReturnProbe | ExitPlacement::Guarded(_) => {
                _ = writeln!(returns, "r {} {ends} {shown}", placement.entry.offset);
            }
            ExitPlacement::Sites(sites) => {
                for site in sites {
                    _ = writeln!(entries, "e {} {ends} {shown}", site.offset);
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
    let counts = bench.counts();
    println!("{}: {what}: {counts:?} at {} sites", program.display(), sites.lines().count());
    assert!(counts.hits > 10, "{}: {what}: no probe fires", program.display());
}

fn check(builds: Vec<Build>, unwinds: bool, libraries: &[&str]) {
    let Some(bench) = Bench::new() else { return };
    let policy = |returns| Policy { returns, unwinding_possible: unwinds, ..Policy::default() };
    let libraries = |policy: &Policy| -> String {
        let present = libraries.iter().map(Path::new).filter(|path| path.exists());
        present.map(|path| sites(path, policy)).collect()
    };
    let auto = policy(Returns::Auto);
    let ret_sites = policy(Returns::RetSites);
    for build in builds {
        let Some(program) = build.run(bench.folder.path()) else { return };
        let with_libraries = |policy| sites_of(&program, policy, |_| true) + &libraries(policy);
        same(&bench, &program, &with_libraries(&auto), "auto");
        if !unwinds {
            same(&bench, &program, &with_libraries(&ret_sites), "ret sites");
        }
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
    let socket = bench.folder.path().join("socket");
    let redis = redis_command(&socket);
    let redis: Vec<_> = redis.iter().map(Path::new).collect();
    let server = redis_server();
    for object in [LIBC, LIBSTDCPP, LIBGCC, LIBCRYPTO, &server.to_string_lossy()] {
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

fn redis_command(socket: &Path) -> Vec<String> {
    let socket = socket.display().to_string();
    let server = redis_server();
    let words = [&server.to_string_lossy(), "--port", "0", "--save", "", "--unixsocket", &socket];
    words.map(str::to_owned).into()
}

/// Returns the answer of a redis that `command` starts.
fn ask_redis(mut command: Command, socket: &Path) -> (String, Option<i32>) {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut server = command.stdout(Stdio::null()).spawn().expect("redis starts");
    for _ in 0..300 {
        if socket.exists() || server.try_wait().is_ok_and(|status| status.is_some()) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let mut client = Command::new("redis-cli");
    client.arg("-s").arg(socket).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = client.spawn().expect("redis-cli starts");
    let mut commands = String::new();
    for n in 0..40 {
        let value = "v".repeat(n * 17);
        _ = writeln!(
            commands,
            "SET k{n} {value}x\nAPPEND k{n} y\nSTRLEN k{n}\nLPUSH l {n} {value}"
        );
        _ = writeln!(commands, "ZADD z {n} m{n}\nHSET h f{n} {n}.5\nSADD s {n}\nPFADD p {n}");
        _ = writeln!(commands, "INCRBYFLOAT fl 0.{n}\nGETRANGE k{n} 1 5\nXADD x {n}-1 a {n}");
    }
    commands += "SORT l ALPHA LIMIT 0 5\nZRANGEBYSCORE z 3 9 WITHSCORES\nHGETALL h\nPFCOUNT p\n";
    commands +=
        "EVAL \"return {KEYS[1], redis.call('get', 'k1'), #ARGV, cjson.encode({1,2})}\" 1 a b c\n";
    commands += "EVAL \"error('out')\" 0\nEVAL \"return redis.call('nope')\" 0\n";
    commands += "EVAL \"return {pcall(function() error('x') end)}\" 0\nNOSUCH\nXRANGE x 3 6\n";
    commands += "MULTI\nINCR c\nINCR k1\nEXEC\nOBJECT ENCODING l\nDEBUG SLEEP 0\nBITCOUNT k9\n";
    commands += "GEOADD g 13.361389 38.115556 a 15.087269 37.502669 b\nGEODIST g a b\nLCS k3 k4\n";
    commands += "SHUTDOWN NOSAVE\n";
    let mut input = client.stdin.take().expect("a pipe");
    input.write_all(commands.as_bytes()).expect("redis-cli reads");
    drop(input);
    let output = client.wait_with_output().expect("redis-cli ends");
    let status = server.wait().expect("redis ends");
    (String::from_utf8_lossy(&output.stdout).into_owned(), status.code())
}

#[test]
fn redis_answers_alike() {
    let Some(bench) = Bench::new() else { return };
    let server = redis_server();
    if !server.exists() {
        println!("skipped: no redis here");
        return;
    }
    let socket = bench.folder.path().join("socket");
    let command = redis_command(&socket);
    let mut plain = Command::new(&command[0]);
    plain.args(&command[1..]);
    let expected = ask_redis(plain, &socket);
    assert!(expected.0.lines().count() > 400, "{}", expected.0);
    for returns in [Returns::Auto, Returns::RetSites] {
        let policy = Policy { returns, ..Policy::default() };
        let file = bench.folder.path().join("sites");
        let all = sites(&server, &policy) + &sites(Path::new(LIBC), &policy);
        std::fs::write(&file, all).expect("sites are written");
        let mut traced = Command::new(&bench.attach);
        traced.arg(&file).arg("run").args(&command);
        let answered = ask_redis(traced, &socket);
        if answered.1 == Some(98) {
            println!("skipped: no multi links here");
            return;
        }
        println!("redis: {returns:?}: {:?}", bench.counts());
        assert_eq!(answered, expected, "{returns:?}");
    }
}

/// Every call of the C program's own functions ends at a site, with the stack pointer it began
/// with, but for the four frames that its `longjmp`s drop. Functions whose end is not seen are
/// left out.
#[test]
fn every_end_is_seen() {
    let Some(bench) = Bench::new() else { return };
    for build in Build::gcc("c.c") {
        let Some(program) = build.run(bench.folder.path()) else { return };
        let policy = Policy { returns: Returns::RetSites, ..Policy::default() };
        let seen = |placement: &Placement| !matches!(placement.exit, ExitPlacement::Unseen(_));
        let sites = sites_of(&program, &policy, seen);
        same(&bench, &program, &sites, "own functions");
        let counts = bench.counts();
        assert_eq!(counts.calls - counts.ended, 4, "{:?}: {counts:?}", build.arguments);
    }
}

/// Return probes on both sides of a coroutine make the target hang: there must be none.
#[test]
fn coroutines() {
    let build = Build { source: "coroutine.c", arguments: vec!["-O1"] };
    check(vec![build], false, &[]);
}
