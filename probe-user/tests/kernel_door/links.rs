//! Every kind of link counts exactly, and only in the chosen process.

use crate::support::{Session, Target, until};
use ctrace_common::Kind;
use ctrace_user::testing::bpf::{BpfError, LinkChoice, LinkKind, Role, now};

/// Calls of `f`, each of which calls `g`, through one kind of link.
fn count_calls(choice: LinkChoice, kind: LinkKind) {
    const CALLS: usize = 10_000;
    let Some(mut session) = Session::start(false) else { return };
    let mut target = Target::start(&["twice", &CALLS.to_string()]);
    let pid = target.pid();
    let code = |target: &Target| ["f", "g"].map(|symbol| target.code_of(symbol));
    let untouched = code(&target);
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
    // Whoever lists all links holds each for an instant, and removes its probes a moment later.
    until("the probes are gone", || code(&target) == untouched);
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
