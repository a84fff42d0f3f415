//! The kernel door against the running kernel: exact counts through every kind of link.
//!
//! Without root, or without the eBPF programs in the binary, the tests say so and pass.

mod support;

use ctrace_common::{Cookie, JumpTarget, Kind, NO_CONDITION, NO_JUMP, NO_REGISTER};
use ctrace_core::units::Pid;
use ctrace_user::bpf::{BpfError, LinkChoice, LinkKind, Role, now};
use std::{
    collections::HashMap,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    os::unix::fs::FileExt as _,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use support::{BINARY, Session, Target, install, site};

/// Calls of `f`, each of which calls `g`, through one kind of link.
fn count_calls(choice: LinkChoice, kind: LinkKind) {
    const CALLS: usize = 10_000;
    let Some(mut session) = Session::start(false) else { return };
    let mut target = Target::start(&["twice", &CALLS.to_string()]);
    let pid = target.pid();
    session.kernel.trace_process(pid).unwrap();
    let attachment = match session.attach(Some(pid), Role::Function, &["f", "g"], choice) {
        Err(error @ BpfError::Unsupported { .. }) => {
            eprintln!("skipped: {error}");
            return target.kill();
        }
        result => result.unwrap(),
    };
    assert_eq!((attachment.kind(), attachment.sites()), (kind, 2));
    let before = now().0;
    target.go();
    assert_eq!(target.line(), "half");
    let after = now().0;
    attachment.detach().unwrap();
    target.go();
    target.finish();
    session.drain();
    assert_eq!(session.lost().events, 0);
    for probe in [0, 1] {
        assert_eq!(session.count(Kind::Enter, probe), CALLS);
        assert_eq!(session.count(Kind::Return, probe), CALLS);
    }
    // One thread: the time stamps tell the order, and every call nests as it should.
    let mut calls: Vec<_> = session.events.iter().filter(|e| e.kind as u8 <= 2).collect();
    calls.sort_by_key(|event| event.ts);
    for call in calls.chunks(4) {
        use Kind::{Enter, Return};
        let shape: Vec<_> = call.iter().map(|event| (event.kind, event.probe)).collect();
        assert_eq!(shape, [(Enter, 0), (Enter, 1), (Return, 1), (Return, 0)]);
        assert_eq!(call[0].sp, call[3].sp, "entry and return show the same stack pointer");
        assert_eq!(call[1].sp, call[2].sp);
        assert!(call[1].sp < call[0].sp);
        assert!(call.iter().all(|event| event.pid == pid.0 && event.tid == pid.0));
        assert!(before <= call[0].ts && call[3].ts <= after);
    }
    assert_eq!(session.of(Kind::ProcessExit).len(), 1);
}

#[test]
fn a_session_link_counts_exactly() {
    count_calls(LinkChoice::Session, LinkKind::Session);
}

#[test]
fn multi_links_count_exactly() {
    count_calls(LinkChoice::Multi, LinkKind::Multi);
}

#[test]
fn perf_links_count_exactly() {
    count_calls(LinkChoice::Perf, LinkKind::Perf);
}

#[test]
fn entries_and_points_come_alone() {
    let Some(mut session) = Session::start(false) else { return };
    let mut target = Target::start(&["calls", "100"]);
    let pid = Some(target.pid());
    let _entries = session.attach(pid, Role::Entry, &["f"], LinkChoice::Auto).unwrap();
    let _points = session.attach(pid, Role::Point, &["g"], LinkChoice::Perf).unwrap();
    target.go();
    target.finish();
    session.drain();
    assert_eq!(session.count(Kind::Enter, 0), 100);
    assert_eq!(session.count(Kind::Point, 0), 100);
    assert_eq!(session.events.len(), 200);
}

#[test]
fn only_the_chosen_process_counts() {
    for choice in [LinkChoice::Auto, LinkChoice::Multi, LinkChoice::Perf] {
        let Some(mut session) = Session::start(false) else { return };
        let mut targets = [Target::start(&["calls", "300"]), Target::start(&["calls", "300"])];
        let pid = targets[0].pid();
        session.kernel.trace_process(pid).unwrap();
        let _attachment = match session.attach(Some(pid), Role::Function, &["f"], choice) {
            Err(BpfError::Unsupported { .. }) => continue,
            result => result.unwrap(),
        };
        for target in &mut targets {
            target.go();
        }
        for target in targets {
            target.finish();
        }
        session.drain();
        assert_eq!(session.count(Kind::Enter, 0), 300);
        assert!(session.events.iter().all(|event| event.pid == pid.0));
    }
}

#[test]
fn threads_are_named_and_counted() {
    for choice in [LinkChoice::Auto, LinkChoice::Multi, LinkChoice::Perf] {
        let Some(mut session) = Session::start(false) else { return };
        let mut target = Target::start(&["threads", "500"]);
        let pid = target.pid();
        session.kernel.trace_process(pid).unwrap();
        let _attachment = match session.attach(Some(pid), Role::Function, &["f"], choice) {
            Err(BpfError::Unsupported { .. }) => continue,
            result => result.unwrap(),
        };
        target.go();
        target.finish();
        session.drain();
        let mut calls: HashMap<_, usize> = HashMap::new();
        for event in session.of(Kind::Return) {
            *calls.entry(event.tid).or_default() += 1;
        }
        assert_eq!(calls.len(), 4);
        assert!(calls.values().all(|&count| count == 500));
        let forks = session.of(Kind::Fork);
        assert_eq!(forks.len(), 4);
        assert!(forks.iter().all(|event| event.arg0 == u64::from(pid.0)));
        let renames = session.of(Kind::Rename);
        assert!(renames.iter().all(|event| event.name() == "worker"));
        for fork in forks {
            let tid = u32::try_from(fork.arg1).unwrap();
            assert!(calls.contains_key(&tid));
            assert!(renames.iter().any(|event| event.tid == tid && event.pid == pid.0));
        }
        // The main thread and the last worker may end at once: then one of them is not told.
        assert!((4..=5).contains(&session.of(Kind::ThreadExit).len()));
        let ends = session.of(Kind::ProcessExit);
        assert_eq!(ends.iter().map(|e| (e.pid, e.arg0)).collect::<Vec<_>>(), [(pid.0, 0)]);
    }
}

#[test]
fn children_are_followed_from_their_first_call() {
    for choice in [LinkChoice::Auto, LinkChoice::Multi, LinkChoice::Perf] {
        let Some(mut session) = Session::start(true) else { return };
        let mut target = Target::start(&["fork", "50"]);
        // A stranger that runs the same binary is probed too, and must not count.
        let mut stranger = Target::start(&["calls", "50"]);
        let pid = target.pid();
        session.kernel.trace_process(pid).unwrap();
        let _attachment = match session.attach(Some(pid), Role::Function, &["f"], choice) {
            Err(BpfError::Unsupported { .. }) => continue,
            result => result.unwrap(),
        };
        target.go();
        stranger.go();
        stranger.finish();
        target.finish();
        session.drain();
        let mut calls: HashMap<_, usize> = HashMap::new();
        for event in session.of(Kind::Return) {
            *calls.entry(event.pid).or_default() += 1;
        }
        assert_eq!(calls.len(), 4, "the process and its three children: {calls:?}");
        assert!(calls.values().all(|&count| count == 50), "{calls:?}");
        let forks = session.of(Kind::Fork);
        assert_eq!(forks.len(), 3);
        for fork in forks {
            assert_eq!((fork.pid, fork.arg0), (pid.0, fork.arg1));
            let end = |e: &support::Event| u64::from(e.pid) == fork.arg0;
            let ends = session.of(Kind::ProcessExit);
            assert_eq!(ends.iter().find(|e| end(e)).map(|e| e.arg0), Some(3 << 8));
        }
    }
}

#[test]
fn without_following_children_are_told_but_not_traced() {
    let Some(mut session) = Session::start(false) else { return };
    let mut target = Target::start(&["fork", "50"]);
    let pid = target.pid();
    session.kernel.trace_process(pid).unwrap();
    let _attachment = session.attach(Some(pid), Role::Function, &["f"], LinkChoice::Auto).unwrap();
    target.go();
    target.finish();
    session.drain();
    assert_eq!(session.count(Kind::Enter, 0), 50);
    assert_eq!(session.of(Kind::Fork).len(), 3);
    assert!(session.events.iter().all(|event| event.pid == pid.0));
}

#[test]
fn an_exec_is_told_and_its_calls_count() {
    for choice in [LinkChoice::Auto, LinkChoice::Multi, LinkChoice::Perf] {
        let Some(mut session) = Session::start(false) else { return };
        let mut target = Target::start(&["exec", "20", BINARY.path.to_str().unwrap()]);
        let pid = target.pid();
        session.kernel.trace_process(pid).unwrap();
        let _attachment = match session.attach(Some(pid), Role::Function, &["f"], choice) {
            Err(BpfError::Unsupported { .. }) => continue,
            result => result.unwrap(),
        };
        target.go();
        target.go();
        target.finish();
        session.drain();
        assert_eq!(session.count(Kind::Return, 0), 40, "{choice:?}");
        let execs = session.of(Kind::Exec);
        assert_eq!(execs.len(), 1);
        assert_eq!((execs[0].name().as_str(), execs[0].arg0), ("target", u64::from(pid.0)));
    }
}

#[test]
fn the_wait_status_of_a_killed_process_is_told() {
    let Some(mut session) = Session::start(false) else { return };
    let mut target = Target::start(&["forever"]);
    session.kernel.trace_process(target.pid()).unwrap();
    target.go();
    target.kill();
    session.drain();
    let ends = session.of(Kind::ProcessExit);
    assert_eq!(ends.iter().map(|event| event.arg0).collect::<Vec<_>>(), [9]);
}

#[test]
fn every_lost_event_is_counted() {
    const CALLS: usize = 200_000;
    let Some(mut session) = Session::with_rings(4096, false) else { return };
    let mut target = Target::start(&["calls", &CALLS.to_string()]);
    session.kernel.trace_process(target.pid()).unwrap();
    let pid = Some(target.pid());
    let _attachment = session.attach(pid, Role::Function, &["f"], LinkChoice::Auto).unwrap();
    target.go();
    while session.of(Kind::ProcessExit).is_empty() && target.is_running() {
        session.drain();
        thread::sleep(Duration::from_millis(2));
    }
    target.finish();
    session.drain();
    let lost = session.lost();
    assert!(lost.events > 0, "a ring of a page cannot hold it all");
    // Besides the calls: the ends of the thread and of the process.
    assert_eq!(session.events.len() + lost.events as usize, 2 * CALLS + 2);
    let told: u64 = session.events.iter().map(|event| u64::from(event.lost_before)).sum();
    assert_eq!(told + lost.unattributed, lost.events);
}

#[test]
fn all_conditions_are_evaluated() {
    const CONDITIONS: [&str; 16] =
        ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"];
    for choice in [LinkChoice::Auto, LinkChoice::Perf] {
        let Some(mut session) = Session::start(false) else { return };
        let mut target = Target::start(&["conditions"]);
        let exits: Vec<_> = CONDITIONS
            .iter()
            .zip(0..)
            .map(|(name, condition)| {
                let kind = Kind::ExitJump as u8;
                let cookie = Cookie::exit(condition, kind, condition as u8, NO_JUMP);
                site(&format!("site_{name}"), cookie)
            })
            .collect();
        let pid = Some(target.pid());
        let _exits = session
            .kernel
            .attach(&BINARY.path, pid, Role::ExitSite, &exits, choice, false)
            .unwrap();
        let entries: Vec<_> = CONDITIONS.iter().map(|name| format!("jump_{name}")).collect();
        let entries: Vec<_> = entries.iter().map(String::as_str).collect();
        let _entries = session.attach(pid, Role::Entry, &entries, choice).unwrap();
        target.go();
        let output = target.finish();
        session.drain();
        for (taken, probe) in output.lines().zip(0..) {
            let taken: usize = taken.parse().unwrap();
            assert!(0 < taken && taken < 32);
            assert_eq!(
                session.count(Kind::ExitJump, probe),
                taken,
                "{}",
                CONDITIONS[probe as usize]
            );
            assert_eq!(session.count(Kind::Enter, probe), 32);
        }
        let sp = session.of(Kind::Enter)[0].sp;
        assert!(session.events.iter().all(|event| event.sp == sp), "exits show the entry's sp");
    }
}

#[test]
fn indirect_jumps_are_told_apart_by_their_targets() {
    let Some(mut session) = Session::start(false) else { return };
    let address = |symbol: &str| BINARY.address(symbol).cast_signed();
    let jump = |start: &str, site: &str, end: &str| JumpTarget {
        inside: [
            [0, 0],
            [address(start) - address(site), address(end) - address(site)],
            [0, 0],
            [0, 0],
        ],
        base: NO_REGISTER,
        index: NO_REGISTER,
        scale: 1,
        ..JumpTarget::default()
    };
    let jumps = [
        JumpTarget { base: 7, ..jump("by_register", "by_register", "end_register") },
        JumpTarget {
            base: 0,
            index: 7,
            scale: 8,
            memory: 1,
            ..jump("by_table", "site_table", "end_table")
        },
        JumpTarget {
            memory: 1,
            relative: 1,
            displacement: address("pointer") - address("by_pointer"),
            ..jump("by_pointer", "by_pointer", "end_pointer")
        },
    ];
    assert_eq!(session.kernel.add_jumps(&[JumpTarget::default(); 5]).unwrap(), 0);
    let first = session.kernel.add_jumps(&jumps).unwrap();
    assert_eq!(first, 5);
    let sites: Vec<_> = ["by_register", "site_table", "by_pointer"]
        .iter()
        .zip(0..)
        .map(|(symbol, index)| {
            let kind = Kind::ExitJump as u8;
            site(symbol, Cookie::exit(index.into(), kind, NO_CONDITION, first + index))
        })
        .collect();
    let mut target = Target::start(&["indirect"]);
    let pid = Some(target.pid());
    let _exits = session
        .kernel
        .attach(&BINARY.path, pid, Role::ExitSite, &sites, LinkChoice::Auto, false)
        .unwrap();
    target.go();
    let output = target.finish();
    session.drain();
    assert_eq!(output.lines().collect::<Vec<_>>(), ["7", "10", "5"]);
    let counts = [0, 1, 2].map(|probe| session.count(Kind::ExitJump, probe));
    assert_eq!(counts, [7, 10, 5]);
}

#[test]
fn what_cannot_be_attached_says_why() {
    let Some(session) = Session::start(false) else { return };
    let attach = |path: &str, pid, offset| {
        let mut site = site("f", Cookie::plain(0));
        site.offset = offset;
        session
            .kernel
            .attach(Path::new(path), pid, Role::Function, &[site], LinkChoice::Auto, false)
            .unwrap_err()
    };
    let target = BINARY.path.to_str().unwrap();
    let f = BINARY.offset("f");
    assert!(matches!(attach("/no/such/file", None, f), BpfError::NoFile { .. }));
    assert!(matches!(attach("/usr", None, f), BpfError::NotAFile { .. }));
    let error = attach(target, Some(Pid(4_194_000)), f);
    assert!(matches!(error, BpfError::NoProcess { pid: 4_194_000 }), "{error}");
    let error = attach(target, None, 1 << 40);
    assert!(matches!(error, BpfError::Refused { .. }), "{error}");
    let sites = [f, 1 << 40, BINARY.offset("g")]
        .map(|offset| ctrace_user::bpf::Site { offset, ..site("f", Cookie::plain(0)) });
    let error = session
        .kernel
        .attach(&BINARY.path, None, Role::Entry, &sites, LinkChoice::Auto, false)
        .unwrap_err();
    let blamed = |place| place == 1 << 40;
    assert!(matches!(error, BpfError::Refused { place: Some(at), .. } if blamed(at)), "{error}");
    assert!(matches!(session.kernel.rings(), Err(BpfError::RingsTaken)));
}

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
    let sites = [ctrace_user::bpf::Site { offset, ref_ctr_offset: 0, cookie: Cookie::plain(0) }];
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
        .args(["--exact", "attach_and_wait", "--ignored", "--nocapture"])
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

#[test]
fn diagnostics_have_one_reader() {
    let Some(mut session) = Session::start(false) else { return };
    session.kernel.diagnostics().unwrap().flush();
    assert!(matches!(session.kernel.diagnostics(), Err(BpfError::Diagnostics { .. })));
}

#[test]
fn this_machine_can_do_what_it_does() {
    let Some(session) = Session::start(false) else { return };
    let features = session.kernel.features();
    assert!(features.perf_link.works, "{features:?}");
    assert!(features.btf.works && features.ring_buffer.works && features.programs.works);
    if (features.version.major, features.version.minor) >= (6, 13) {
        assert!(features.session_link.works && features.multi_link.works, "{features:?}");
        assert!(features.semaphores.works, "{features:?}");
        assert_eq!(features.link, Some(LinkKind::Session));
    }
    assert_eq!(features, &ctrace_user::bpf::Features::probe());
}
