//! Threads, children, execs and ends of traced processes are told.

use crate::support::{BINARY, Event, Session, Target, name};
use ctrace_common::{Change, Kind};
use ctrace_user::testing::bpf::{BpfError, LinkChoice, Role};
use std::collections::HashMap;

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
        let renames = session.of(Kind::Rename);
        let is_worker = |event: &Event| match event.change {
            Some(Change::Rename { comm }) => name(&comm) == "worker",
            _ => false,
        };
        assert!(renames.iter().all(is_worker));
        for fork in forks {
            let (process, tid) = fork.child().unwrap();
            assert_eq!(process, pid.0);
            assert!(calls.contains_key(&tid));
            assert!(renames.iter().any(|event| event.tid == tid && event.pid == pid.0));
        }
        // The main thread and the last worker may end at once: then one of them is not told.
        assert!((4..=5).contains(&session.of(Kind::ThreadExit).len()));
        let ends = session.of(Kind::ProcessExit);
        assert_eq!(
            ends.iter().map(|e| (e.pid, e.status())).collect::<Vec<_>>(),
            [(pid.0, Some(0))]
        );
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
            let (child, thread) = fork.child().unwrap();
            assert_eq!((fork.pid, thread), (pid.0, child));
            let ends = session.of(Kind::ProcessExit);
            let end = ends.iter().find(|end| end.pid == child);
            assert_eq!(end.and_then(Event::status), Some(3 << 8));
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
        let Some(Change::Exec { comm, by, held }) = execs[0].change else { panic!("{execs:?}") };
        assert_eq!((name(&comm).as_str(), by, held), ("target", pid.0, false));
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
    assert_eq!(ends.iter().map(Event::status).collect::<Vec<_>>(), [Some(9)]);
}
