//! Programs that are deleted while they run, and tracers that are killed.

use crate::support::{BINARY, Session, Target, install, site};
use ctrace_common::{Cookie, Kind};
use ctrace_core::units::Pid;
use ctrace_user::testing::bpf::{LinkChoice, Role, Site};
use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    os::unix::fs::FileExt as _,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

#[test]
fn a_deleted_program_is_reached_through_its_process() {
    let Some(mut session) = Session::start(false) else { return };
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    install(&fs::read(&BINARY.path).unwrap(), &copy);
    let mut command = Command::new(&copy);
    command.args(["calls", "30"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    fs::remove_file(&copy).unwrap();
    let exe = format!("/proc/{}/exe", child.id());
    let sites = [site("f", Cookie::plain(0))];
    let pid = Some(Pid(child.id()));
    let _attachment = session
        .kernel
        .attach(Path::new(&exe), pid, Role::Function, &sites, LinkChoice::Auto, false)
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"\n").unwrap();
    child.wait().unwrap();
    session.drain();
    assert_eq!(session.count(Kind::Return, 0), 30);
}

const VICTIM: &str = "CTRACE_TEST_ATTACH_TO";

/// Not a test of its own: the process that `a_killed_tracer_leaves_nothing_behind` kills.
#[test]
#[ignore = "runs as a child of another test"]
fn attach_and_wait() {
    let pid = Pid(std::env::var(VICTIM).unwrap().parse().unwrap());
    let session = Session::start(false).unwrap();
    session.kernel.trace_process(pid).unwrap();
    let exe = format!("/proc/{}/exe", pid.0);
    let offset = std::env::var("CTRACE_TEST_OFFSET").unwrap().parse().unwrap();
    let sites = [Site { offset, ref_ctr_offset: 0, cookie: Cookie::plain(0) }];
    let _attachment = session
        .kernel
        .attach(Path::new(&exe), Some(pid), Role::Function, &sites, LinkChoice::Auto, false)
        .unwrap();
    println!("\nattached");
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn a_killed_tracer_leaves_nothing_behind() {
    if Session::start(false).is_none() {
        return;
    }
    let mut target = Target::start(&["forever"]);
    let pid = target.pid();
    let address = target.address_of("f");
    let memory = File::open(format!("/proc/{}/mem", pid.0)).unwrap();
    let first_byte = || {
        let mut byte = [0];
        memory.read_exact_at(&mut byte, address).unwrap();
        byte[0]
    };
    target.go();
    let original = first_byte();
    assert_ne!(original, 0xcc);
    let mut tracer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lifetime::attach_and_wait", "--ignored", "--nocapture"])
        .env(VICTIM, pid.0.to_string())
        .env("CTRACE_TEST_OFFSET", BINARY.offset("f").to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(tracer.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "attached"));
    assert_eq!(first_byte(), 0xcc);
    tracer.kill().unwrap();
    tracer.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while first_byte() != original && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(first_byte(), original);
    assert!(target.is_running());
    target.kill();
}
