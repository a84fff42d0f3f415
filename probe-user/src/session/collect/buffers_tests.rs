//! The tests read this very process.

use super::super::memory::tests::{address, buffer, own};
use super::*;

fn owned(id: BufferId) -> OwnedBuffer {
    OwnedBuffer { id, tid: Tid(9), inside: 5 }
}

fn readings(buffers: &mut Buffers, all: bool) -> usize {
    let mut count = 0;
    buffers.look(Nanos(7), all, |reading| {
        assert_eq!(reading.tid, Tid(9));
        count += 1;
    });
    count
}

#[test]
fn only_what_has_changed_is_read() {
    let mut bytes = buffer(0, 0, 3);
    let id = BufferId { pid: own(), address: address(&*bytes) };
    let mut buffers = Buffers::default();
    buffers.add(owned(id), Nanos(1));
    assert_eq!([false, false, true].map(|all| readings(&mut buffers, all)), [1, 0, 1]);
    *bytes = *buffer(0, 0, 4);
    assert_eq!([false, false].map(|all| readings(&mut buffers, all)), [1, 0]);
    // The last event has become a whole call.
    bytes[42] = 1;
    assert_eq!([false, false].map(|all| readings(&mut buffers, all)), [1, 0]);
    buffers.forget_thread(own(), Tid(9));
    assert_eq!(readings(&mut buffers, true), 0);
}

/// More buffers than one kernel call takes.
#[test]
fn of_many_each_is_read_once_and_what_is_gone_disturbs_none() {
    let many: Vec<_> = (0..2500).map(|n| buffer(0, 0, n % 3)).collect();
    let mut buffers = Buffers::default();
    for (n, bytes) in many.iter().enumerate() {
        let address = if n % 500 == 1 { 8 + n as u64 } else { address(&**bytes) };
        buffers.add(owned(BufferId { pid: own(), address }), Nanos(1));
    }
    let filled = (0..2500).filter(|n| n % 3 > 0 && n % 500 != 1).count();
    assert_eq!([false, false, true].map(|all| readings(&mut buffers, all)), [filled, 0, filled]);
}

#[test]
fn what_cannot_be_read_is_forgotten() {
    let mut buffers = Buffers::default();
    buffers.add(owned(BufferId { pid: own(), address: 8 }), Nanos(1));
    assert_eq!(readings(&mut buffers, true), 0);
    assert_eq!(buffers.handed_to(), Nanos::MAX);
}

/// The mark of an event that is taken but not written yet makes the buffer be read again.
#[test]
fn what_is_not_written_yet_is_looked_for_again() {
    let mut bytes = buffer(0, 0, 3);
    bytes[64 + 2 * 16..64 + 3 * 16].fill(0);
    let id = BufferId { pid: own(), address: address(&*bytes) };
    let mut buffers = Buffers::default();
    buffers.add(owned(id), Nanos(1));
    assert_eq!([false, false].map(|all| readings(&mut buffers, all)), [1, 1]);
}

#[test]
fn the_buffer_of_another_thread_is_left_alone() {
    let bytes = buffer(0, 0, 3);
    let id = BufferId { pid: own(), address: address(&*bytes) };
    let mut buffers = Buffers::default();
    buffers.add(OwnedBuffer { inside: 6, ..owned(id) }, Nanos(1));
    assert_eq!(readings(&mut buffers, true), 0);
}

#[test]
fn a_buffer_holds_back_until_its_first_reading_is_handed_on() {
    let bytes = buffer(0, 0, 3);
    let id = BufferId { pid: own(), address: address(&*bytes) };
    let mut buffers = Buffers::default();
    assert_eq!(buffers.handed_to(), Nanos::MAX);
    buffers.add(owned(id), Nanos(3));
    assert_eq!(buffers.handed_to(), Nanos(3));
    readings(&mut buffers, false);
    assert_eq!(buffers.handed_to(), Nanos(3));
    buffers.hand_on();
    assert_eq!(buffers.handed_to(), Nanos(7));
}

/// Checks a process that did not answer in time.
#[test]
fn who_does_not_answer_holds_back_once_and_is_waited_for_no_more_after_a_second_time() {
    let bytes = buffer(0, 0, 3);
    let id = BufferId { pid: own(), address: address(&*bytes) };
    let mut buffers = Buffers::default();
    buffers.add(owned(id), Nanos(1));
    readings(&mut buffers, false);
    buffers.hand_on();
    assert_eq!(buffers.handed_to(), Nanos(7));
    let miss = |buffers: &mut Buffers, last| {
        let process = buffers.processes.get_mut(&own()).expect("it is known");
        process.missed(Nanos(7), last);
    };
    miss(&mut buffers, false);
    buffers.looked = Nanos(8);
    buffers.hand_on();
    assert_eq!(buffers.handed_to(), Nanos(7), "the next look may bring what it wrote");
    assert_eq!(readings(&mut buffers, false), 1, "all of it is read again");
    for _ in 0..2 {
        miss(&mut buffers, false);
    }
    assert_eq!(buffers.handed_to(), Nanos::MAX, "nothing waits for it");
    assert_eq!(readings(&mut buffers, false), 1, "it answers again");
    assert_eq!(buffers.handed_to(), Nanos(8));
    miss(&mut buffers, true);
    assert_eq!(buffers.handed_to(), Nanos::MAX, "there is no next look");
}
