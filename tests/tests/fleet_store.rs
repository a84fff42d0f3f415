//! Tests daemons whose tables go to an object store.

use ctrace_tests::daemon::{Daemon, check_reports, folder, reports};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::fleet::{self, download, parquet, sender, ship_once};
use ctrace_tests::look::{children, files, wait_until};
use ctrace_tests::process::{Finished, run};
use ctrace_tests::proxy::{Delay, hand_on};
use ctrace_tests::targets::program;
use ctrace_tests::tools::s3::{self, BUCKET, KEY, S3};
use ctrace_tests::tools::signed_s3::{self, SignedS3};
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use serde_json::Value;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
const SPIN: &str = "[[target]]\nid = \"spin\"\nexe = \"DIR/spin\"\nfunctions = [\"step\", \"mix\"]\n\
    interval = \"300ms\"\n";

fn calls_in(env: &Env, tables: &Path) -> u64 {
    let mut command = Command::new(&env.ctrace);
    command.args(["fleet", "report"]).arg(tables).args(["--format", "json"]);
    let finished = run(&mut command, LIMIT).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let all: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(all["damaged"], Value::Array(Vec::new()));
    all["parts"][0]["calls"].as_u64().expect("a number")
}

/// Returns the calls that a daemon told in its reports.
fn calls_told(finished: &Finished) -> u64 {
    let all = reports(&finished.stdout).expect("JSON lines");
    let last = all.last().expect("a report");
    last["daemon"]["since_start"]["calls"].as_u64().expect("a number")
}

/// Returns the objects of a server as a folder of tables.
fn downloaded(server: &S3, prefix: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    download(server, prefix, folder.path(), |_| true).expect("copied");
    folder
}

/// Whatever the daemon reports is in the store at its end, and nothing is left in the folder.
#[test]
fn tables_move_to_a_store_of_files() {
    let env = or_skip!(gate::live(Link::Session));
    let _sender = or_skip!(sender(&env));
    let dir = folder(&env, &[("spin", &program("spin.c"))]).expect("targets build");
    std::fs::create_dir(dir.path().join("store")).expect("made");
    let tables = "[fleet]\nfolder = \"DIR/tables\"\nstore = \"file://DIR/store\"\ninterval = \"1s\"\n\
        host = \"a/b\"\n[metrics]\nlisten = \"unix:DIR/metrics\"\n";
    let daemon = Daemon::start(&env, dir, &format!("{tables}{SPIN}")).expect("the daemon starts");
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    wait_until("a table is in the store", || parquet(&daemon.path("store")) > 0).expect("sent");
    let child = sent_by(&daemon).expect("a child");
    let status = std::fs::read_to_string(format!("/proc/{child}/status")).expect("it runs");
    for line in ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"] {
        assert!(status.contains(line), "{status}");
    }
    // One that is killed is started again.
    let pid = rustix::process::Pid::from_raw(child).expect("a process");
    rustix::process::kill_process(pid, Signal::KILL).expect("it runs");
    wait_until("another child runs", || sent_by(&daemon).is_some_and(|it| it != child))
        .expect("started");
    let before = parquet(&daemon.path("store"));
    wait_until("another table is in the store", || parquet(&daemon.path("store")) > before)
        .expect("sent");
    let child = sent_by(&daemon).expect("a child");
    for name in ["uploads_total", "upload_failures_total"] {
        assert!(metric(&daemon, &format!("ctrace_fleet_{name}")) >= Some(1.0), "{name}");
    }
    assert!(metric(&daemon, "ctrace_fleet_files_waiting").is_some());
    let (finished, dir) = daemon.end().expect("ends");
    assert!(ctrace_tests::look::has_ended(child), "the child outlives the daemon");
    assert_eq!(finished.stderr.matches("cannot send tables").count(), 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("ctrace-store has ended: signal: 9"), "{}", finished.stderr);
    assert_eq!(calls_in(&env, &dir.path().join("store")), calls_told(&finished));
    assert!(dir.path().join("store/functions/host=a%2Fb").is_dir());
    assert_eq!(files(&dir.path().join("tables")), Vec::<PathBuf>::new());
}

/// Returns a metric of a daemon that serves them at a socket.
fn metric(daemon: &Daemon, name: &str) -> Option<f64> {
    fleet::metric(UnixStream::connect(daemon.path("metrics")).ok()?, name)
}

/// Returns the running ctrace-store of a daemon.
fn sent_by(daemon: &Daemon) -> Option<i32> {
    let is_sender = |pid: &i32| {
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        comm.trim() == "ctrace-store"
    };
    children(daemon.pid()).into_iter().find(is_sender)
}

/// Wrong addresses, and a program that anybody could have changed, are told by `--check`.
#[test]
fn a_store_that_cannot_work_is_refused_before_the_start() {
    let env = or_skip!(gate::live(Link::Session));
    let sender = or_skip!(sender(&env));
    let dir = TempDir::new().expect("a folder");
    let bare = dir.path().join("ctrace");
    std::fs::copy(&env.ctrace, &bare).expect("copied");
    let check = |ctrace: &Path, fleet: &str| {
        let config = dir.path().join("ctrace.toml");
        let target = "[[target]]\nid = \"a\"\nname = \"a\"\n";
        std::fs::write(&config, format!("[fleet]\n{fleet}\n{target}")).expect("written");
        let mut command = Command::new(ctrace);
        let finished = run(command.args(["daemon", "--check", "--config"]).arg(config), LIMIT);
        let finished = finished.expect("runs");
        (finished.shell_code(), finished.stderr)
    };
    let good = "folder = \"/var/lib/x\"\nstore = \"s3://bucket/x\"";
    for (fleet, why) in [
        ("store = \"s3://bucket\"", "`store` needs `folder`"),
        ("folder = \"/var/lib/x\"\nstore = \"s3://key:secret@bucket\"", "daemon's environment"),
        ("folder = \"/var/lib/x\"\nstore = \"file:///var/lib/x/y\"", "`store` is in `folder`"),
        ("folder = \"/var/lib/x\"\nstore = \"ftp://host\"", "there is no ftp://"),
    ] {
        let (code, told) = check(&env.ctrace, fleet);
        assert!(code == 125 && told.contains(why), "{code}: {told}");
    }
    assert_eq!(check(&env.ctrace, good).0, 0);
    let (code, told) = check(&bare, good);
    assert!(code == 125 && told.contains("needs") && told.contains("ctrace-store"), "{told}");
    let beside = dir.path().join("ctrace-store");
    std::fs::copy(sender, &beside).expect("copied");
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&beside, everybody).expect("changed");
    let (code, told) = check(&bare, good);
    assert!(code == 125 && told.contains("others can write it"), "{told}");
}

/// Without the program that sends tables, a daemon traces all the same, says so, and keeps the tables.
#[test]
fn a_daemon_without_the_program_starts() {
    let mut env = or_skip!(gate::live(Link::Session));
    let bare = TempDir::new().expect("a folder");
    let ctrace = bare.path().join("ctrace");
    std::fs::copy(&env.ctrace, &ctrace).expect("copied");
    env.ctrace = ctrace;
    let dir = folder(&env, &[("spin", &program("spin.c"))]).expect("targets build");
    let old = dir.path().join("tables/functions/host=old/day=2026-11-30/unit=u");
    std::fs::create_dir_all(&old).expect("made");
    std::fs::write(old.join("part-1-00.parquet"), "x").expect("written");
    let config = "[fleet]\nfolder = \"DIR/tables\"\nstore = \"s3://bucket\"\ninterval = \"1s\"\n";
    let daemon = Daemon::start(&env, dir, &format!("{config}{SPIN}")).expect("the daemon starts");
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    wait_until("a table waits", || parquet(&daemon.path("tables")) > 1).expect("written");
    let (finished, _dir) = daemon.end().expect("ends");
    let told = &finished.stderr;
    assert!(told.contains("tables wait until it is there"), "{told}");
    assert!(told.contains("files of the host old wait there"), "{told}");
    assert_eq!(told.matches("cannot send tables to s3://bucket").count(), 1, "{told}");
}

/// A server is away for a while, and the key is wrong at first. The store has what the daemons counted,
/// once.
#[test]
fn a_server_that_is_away_gets_everything_once() {
    let env = or_skip!(gate::live(Link::Session));
    let sender = or_skip!(sender(&env));
    let program_of_server = or_skip!(s3::find(Path::new(env!("CARGO_TARGET_TMPDIR"))));
    let kept = TempDir::new().expect("a folder");
    let mut server = S3::start(&program_of_server, kept.path().join("s3")).expect("starts");
    let dir = folder(&env, &[("spin", &program("spin.c"))]).expect("targets build");
    let config = format!(
        "[fleet]\nfolder = \"DIR/tables\"\nstore = \"s3://{BUCKET}/a/b\"\ninterval = \"1s\"\n{SPIN}"
    );
    let (wrong, right) = (server.variables("AKIDNOBODY"), server.variables(KEY));
    let daemon = Daemon::start_with(&env, dir, &config, &wrong).expect("the daemon starts");
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    wait_until("tables wait", || parquet(&daemon.path("tables")) > 3).expect("written");
    let (finished, dir) = daemon.end().expect("ends");
    let told = &finished.stderr;
    assert_eq!(told.matches("cannot send tables").count(), 1, "{told}");
    assert!(told.contains("the store denies it (HTTP 403, InvalidAccessKeyId)"), "{told}");
    assert!(!told.contains("AKIDNOBODY"), "{told}");
    let mut expected = calls_told(&finished);
    assert_eq!(server.objects("a/b"), []);
    assert_eq!(calls_in(&env, &dir.path().join("tables")), expected);

    let daemon = Daemon::start_with(&env, dir, &config, &right).expect("the daemon starts");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    wait_until("tables are in the store", || server.objects("a/b").len() > 6).expect("sent");
    server.kill().expect("it runs");
    wait_until("it is told", || daemon.said().contains("cannot send tables")).expect("told");
    server.start_again().expect("starts");
    wait_until("no table waits", || parquet(&daemon.path("tables")) == 0).expect("sent");
    let (finished, dir) = daemon.end().expect("ends");
    let told = &finished.stderr;
    // Each reason once: the connection is cut, and then refused.
    let mut reasons: Vec<_> = told.lines().filter(|line| line.contains("cannot send")).collect();
    let count = reasons.len();
    reasons.sort_unstable();
    reasons.dedup();
    assert!(count > 0 && count == reasons.len(), "{told}");
    assert_eq!(told.matches("again; none waits").count(), 1, "{told}");
    expected += calls_told(&finished);
    assert_eq!(files(&dir.path().join("tables")), Vec::<PathBuf>::new());
    let tables = downloaded(&server, "a/b");
    assert_eq!(calls_in(&env, tables.path()), expected);
    spin.signal(Signal::TERM).expect("runs");
    let url = format!("s3://{BUCKET}/a/b");
    let nothing = run(&mut ship_once(&sender, tables.path(), &url, &wrong), LIMIT).expect("runs");
    assert_eq!(nothing.shell_code(), 1, "{}", nothing.stdout);
}

/// A server that answers too late is told as that, and holds up no report. What it took all the same is
/// there once when it answers in time.
#[test]
fn a_slow_server_gets_everything_once() {
    let env = or_skip!(gate::live(Link::Session));
    let _sender = or_skip!(sender(&env));
    let program_of_server = or_skip!(s3::find(Path::new(env!("CARGO_TARGET_TMPDIR"))));
    let kept = TempDir::new().expect("a folder");
    let server = S3::start(&program_of_server, kept.path().join("s3")).expect("starts");
    let (listener, delay) = (TcpListener::bind("127.0.0.1:0").expect("a port"), Delay::default());
    let mut variables = s3::variables(listener.local_addr().expect("an address").port(), KEY);
    variables.push(("AWS_TIMEOUT".to_owned(), "1 second".to_owned()));
    delay.store(2_500, Ordering::Relaxed);
    hand_on(listener, server.port(), Delay::clone(&delay));
    let dir = folder(&env, &[("spin", &program("spin.c"))]).expect("targets build");
    let config = format!(
        "[fleet]\nfolder = \"DIR/tables\"\nstore = \"s3://{BUCKET}/slow\"\ninterval = \"1s\"\n{SPIN}"
    );
    let daemon = Daemon::start_with(&env, dir, &config, &variables).expect("the daemon starts");
    let spin = daemon.target("spin", &["0", "500"]).expect("starts");
    daemon.wait_until_traced(spin.pid()).expect("traced");
    let late = "cannot send tables to s3://fleet/slow: the store does not answer in time";
    wait_until("it is told", || daemon.said().contains(late)).expect("told");
    assert!(parquet(&daemon.path("tables")) > 0, "{}", daemon.said());
    delay.store(50, Ordering::Relaxed);
    wait_until("tables are sent", || daemon.said().contains("again; none waits")).expect("sent");
    let (finished, dir) = daemon.end().expect("ends");
    check_reports(&reports(&finished.stdout).expect("JSON lines")).expect("no gap");
    assert_eq!(files(&dir.path().join("tables")), Vec::<PathBuf>::new());
    let tables = downloaded(&server, "slow");
    assert_eq!(calls_in(&env, tables.path()), calls_told(&finished));
}

/// The server and then the sender are killed in the middle of an upload: the file stays, no object is
/// seen in part, and the next try sends it.
#[test]
fn an_upload_that_is_cut_leaves_no_part_of_an_object() {
    let env = or_skip!(gate::live(Link::Session));
    let sender = or_skip!(sender(&env));
    let program = or_skip!(s3::find(Path::new(env!("CARGO_TARGET_TMPDIR"))));
    let kept = TempDir::new().expect("a folder");
    let mut server = S3::start(&program, kept.path().join("s3")).expect("starts");
    let spool = TempDir::new().expect("a folder");
    let name = "functions/host=h/day=2026-11-30/unit=u/part-1-00.parquet";
    let file = spool.path().join(name);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    const SIZE: u64 = 400 << 20;
    std::fs::File::create(&file).and_then(|file| file.set_len(SIZE)).expect("written");
    let url = format!("s3://{BUCKET}");
    let variables = server.variables(KEY);
    for victim in ["server", "sender"] {
        let before = server.files();
        let mut command = ship_once(&sender, spool.path(), &url, &variables);
        let running = ctrace_tests::process::Running::start(&mut command).expect("starts");
        wait_until("a part is there", || server.files() > before + 1).expect("sent");
        match victim {
            "server" => server.kill().expect("it runs"),
            _ => running.signal(Signal::KILL).expect("it runs"),
        }
        let finished = running.wait(LIMIT).expect("ends");
        assert_ne!(finished.shell_code(), 0, "{victim}: {}", finished.stdout);
        assert!(file.exists() && server.objects("").is_empty(), "{victim}: {}", finished.stdout);
        if victim == "server" {
            server.start_again().expect("starts");
        }
    }
    let mut command = ship_once(&sender, spool.path(), &url, &variables);
    let finished = run(&mut command, LIMIT).expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stdout);
    let objects = server.objects("");
    assert!(objects.len() == 1 && objects[0].0 == Path::new(name), "{objects:?}");
    assert_eq!(objects[0].1.metadata().expect("it is there").len(), SIZE);
    assert!(!file.exists());
}

/// A server that checks signatures takes what is signed with the right secret only.
#[test]
fn signatures_are_those_of_s3() {
    let env = or_skip!(gate::live(Link::Session));
    let sender = or_skip!(sender(&env));
    let python = or_skip!(signed_s3::find(Path::new(env!("CARGO_TARGET_TMPDIR"))));
    let server = SignedS3::start(&python, BUCKET).expect("starts");
    let spool = TempDir::new().expect("a folder");
    let unit = spool.path().join("functions/host=a%2Fb/day=2026-11-30/unit=u");
    std::fs::create_dir_all(&unit).expect("made");
    for (name, size) in [("part-1-00.parquet", 1_000), ("part-2-00.parquet", 20 << 20)] {
        let file = std::fs::File::create(unit.join(name));
        file.and_then(|file| file.set_len(size)).expect("written");
    }
    let url = format!("s3://{BUCKET}/a/b");
    let mut variables = server.variables.clone();
    variables.iter_mut().filter(|(name, _)| name.contains("SECRET")).for_each(|(_, secret)| {
        *secret = secret.chars().rev().collect();
    });
    let refused =
        run(&mut ship_once(&sender, spool.path(), &url, &variables), LIMIT).expect("runs");
    let why = "failed the store denies it (HTTP 403, SignatureDoesNotMatch)\n";
    assert!(refused.shell_code() == 1 && refused.stdout.ends_with(why), "{}", refused.stdout);
    assert_eq!((parquet(spool.path()), refused.stderr.as_str()), (2, ""));
    let mut command = ship_once(&sender, spool.path(), &url, &server.variables);
    let sent = run(&mut command, LIMIT).expect("runs");
    assert!(sent.shell_code() == 0 && sent.stdout.ends_with("waiting 0 0\n"), "{}", sent.stdout);
    assert_eq!(files(spool.path()), Vec::<PathBuf>::new());
}
