//! The rings at full rate: several threads on all CPUs, rings of a page that always overflow, and
//! a reader that never rests.

use crate::support::{Event, Session, Target};
use ctrace_common::Kind;
use ctrace_user::testing::bpf::{LinkChoice, Role};
use std::collections::HashMap;

const THREADS: usize = 4;
const CALLS: usize = 150_000;

#[test]
fn records_are_whole_and_come_once() {
    let Some(mut session) = Session::with_rings(4096, false) else { return };
    let mut target = Target::start(&["threads", &CALLS.to_string()]);
    let pid = target.pid();
    session.kernel.trace_process(pid).unwrap();
    let _attachment = session.attach(Some(pid), Role::Function, &["f"], LinkChoice::Auto).unwrap();
    target.go();
    while target.is_running() {
        session.drain();
    }
    target.finish();
    session.drain();
    let lost = session.lost();
    assert!(lost.events > 0, "rings of a page cannot hold it all");
    // Besides the calls: threads that begin, get a name and end, and the end of the process. The
    // main thread and the last worker may end at once: then one of them is not told.
    let calls = 2 * THREADS * CALLS;
    let others = session.events.len() + usize::try_from(lost.events).unwrap() - calls;
    assert!((3 * THREADS + 1..=3 * THREADS + 2).contains(&others), "{others} other events");
    let told: u64 = session.events.iter().map(|event| u64::from(event.lost_before)).sum();
    assert_eq!(told + lost.unattributed, lost.events);

    let mut threads: HashMap<u32, Vec<Event>> = HashMap::new();
    for event in &session.events {
        assert_eq!(event.pid, pid.0);
        threads.entry(event.tid).or_default().push(*event);
    }
    assert_eq!(threads.len(), 1 + THREADS);
    threads.remove(&pid.0);
    for mut events in threads.into_values() {
        events.sort_by_key(|event| event.ts);
        assert!(events.is_sorted_by(|a, b| a.ts < b.ts), "a record came twice");
        let sp = events.iter().find(|event| event.kind == Kind::Enter).unwrap().sp;
        // What a thread does, event by event: its name, its calls, its end.
        let mut next = 0;
        for event in &events {
            let place = next + usize::from(event.lost_before);
            next = place + 1;
            let expected = match place {
                0 => Kind::Rename,
                _ if place > 2 * CALLS => Kind::ThreadExit,
                _ if place % 2 == 1 => Kind::Enter,
                _ => Kind::Return,
            };
            let at = if (event.kind as u8) < Kind::Fork as u8 { sp } else { 0 };
            assert_eq!((event.sp, event.probe), (at, 0), "{event:?}");
            if lost.unattributed == 0 {
                assert_eq!(event.kind, expected, "event {place} of its thread: {event:?}");
            }
        }
    }
}
