//! Which waits are reported where all traced calls have return probes.

use crate::support::{Event, Session, Target};
use ctrace_common::{Cause, Kind, WaitState};
use ctrace_core::units::FuncId;
use ctrace_user::testing::bpf::{Attachment, Config, Features, LinkChoice, Role};

/// Runs the target to its end with return probes on `f` and `rests`, and waits watched.
fn waits_of(guards: bool, arguments: &[&str], prepare: impl Fn(&Session)) -> Option<Session> {
    let config = Config {
        ring_bytes: 4 << 20,
        follow: false,
        admits: 0,
        launches: false,
        markers: false,
        values: false,
        python: false,
        conditions: false,
        guards,
        waits: true,
        wakers: false,
        counted: None,
        thrift: None,
    };
    let mut session = Session::load(&config)?;
    let mut target = Target::start(arguments);
    let pid = target.pid();
    session.kernel.trace_process(pid).unwrap();
    let attach = |choice| session.attach(Some(pid), Role::Function, &["f", "rests"], choice);
    let attachment: Attachment = attach(LinkChoice::Auto).unwrap();
    prepare(&session);
    target.go();
    target.finish();
    session.drain();
    drop(attachment);
    assert_eq!(session.lost().events, 0);
    Some(session)
}

fn begins(session: &Session, is_it: impl Fn(WaitState, u16) -> bool) -> Vec<Event> {
    let is_it = |event: &Event| {
        let cause = Cause(event.probe);
        is_it(cause.state().expect("a known state"), cause.syscall())
    };
    session.of(Kind::WaitBegin).into_iter().filter(is_it).collect()
}

/// The system calls of `usleep`: `nanosleep` and `clock_nanosleep`.
fn sleeps(syscall: u16) -> bool {
    matches!(syscall, 35 | 230)
}

/// The number of runs. Kernels of hosted machines may hide some switches from all tracers.
const MOST_RUNS: usize = 8;

/// Between the program at an entry and the kernel's note of the call, a thread looks like one outside of
/// calls. There, it is outside of system calls.
#[test]
fn who_is_preempted_outside_of_noted_calls_is_reported() {
    let mut missing = Vec::new();
    for _ in 0..MOST_RUNS {
        match ends_missing() {
            Some(0) | None => return,
            Some(ends) => missing.push(ends),
        }
    }
    panic!("waits without an end in each run: {missing:?}");
}

/// Returns the number of waits whose end was not reported.
fn ends_missing() -> Option<usize> {
    let session = waits_of(false, &["spins", "20"], |_| ())?;
    let preempted = begins(&session, |state, _| state == WaitState::Preempted);
    let mut threads: Vec<u32> = preempted.iter().map(|event| event.tid).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads.len(), 2, "{preempted:?}");
    // Each wait has its end, and what is surely outside of calls is left out.
    let mut missing = 0;
    for tid in threads {
        let mut is_waiting = false;
        // A thread that moves to another processor has records in several rings.
        let mut events: Vec<_> = session.events.iter().filter(|event| event.tid == tid).collect();
        events.sort_by_key(|event| event.ts);
        for event in events {
            match event.kind {
                Kind::WaitBegin if Cause(event.probe).state() == Some(WaitState::Woken) => {}
                Kind::WaitBegin => missing += usize::from(std::mem::replace(&mut is_waiting, true)),
                Kind::WaitEnd => assert!(std::mem::take(&mut is_waiting), "{event:?}"),
                _ => {}
            }
        }
    }
    assert_eq!(begins(&session, |_, syscall| sleeps(syscall)).len(), 0);
    Some(missing)
}

#[test]
fn calls_that_lose_their_return_probes_keep_their_waits() {
    let spare = |session: &Session| session.kernel.spare_returns(FuncId(1)).unwrap();
    if let Some(why) = Features::probe().guarded_returns.reason {
        eprintln!("skipped: {why}");
        return;
    }
    let Some(session) = waits_of(true, &["rests", "20"], spare) else { return };
    assert_eq!((session.count(Kind::Enter, 1), session.count(Kind::Return, 1)), (20, 0));
    assert_eq!(begins(&session, |_, syscall| sleeps(syscall)).len(), 20);
}
