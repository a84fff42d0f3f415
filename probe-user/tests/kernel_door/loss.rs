//! Events that do not fit into a ring are counted.

use crate::support::{Session, Target};
use ctrace_common::Kind;
use ctrace_user::testing::bpf::{LinkChoice, Role};
use std::{thread, time::Duration};

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
