//! The tests read this very process.

use super::*;

fn owned(id: BufferId) -> OwnedBuffer {
    OwnedBuffer { id, tid: Tid(9), inside: 5 }
}

/// A buffer as a runtime writes it, with `events` slots taken.
fn buffer(next: u64, batch: u64, events: usize) -> Box<[u8; BUFFER_LEN]> {
    let mut bytes = Box::new([0; BUFFER_LEN]);
    bytes[..8].copy_from_slice(b"ctraceb\x01");
    bytes[8..16].copy_from_slice(&next.to_le_bytes());
    bytes[16..20].copy_from_slice(&5_u32.to_le_bytes());
    bytes[20..24].copy_from_slice(&(64 + 16 * events as u32).to_le_bytes());
    bytes[40] = 1;
    bytes[48..56].copy_from_slice(&batch.to_le_bytes());
    for slot in bytes[64..].chunks_exact_mut(16).take(events) {
        slot.fill(1);
    }
    bytes
}

fn address<T>(of: &T) -> u64 {
    std::ptr::from_ref(of) as u64
}

fn own() -> Pid {
    Pid(std::process::id())
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
    buffers.forget_thread(own(), Tid(9));
    assert_eq!(readings(&mut buffers, true), 0);
}

#[test]
fn what_cannot_be_read_is_forgotten() {
    let mut buffers = Buffers::default();
    buffers.add(owned(BufferId { pid: own(), address: 8 }), Nanos(1));
    assert_eq!(readings(&mut buffers, true), 0);
    assert_eq!(buffers.handed_to(), Nanos::MAX);
}

/// The mark of an event that is taken and not written yet brings the buffer up again.
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

/// Addresses and batches of the buffers of a list.
fn walked(head: u64) -> Vec<(u64, u64)> {
    let memory = Memory::open(own()).unwrap();
    let mut found = Vec::new();
    walk(&memory, head, |address, _, header| found.push((address, header.batch)));
    found
}

#[test]
fn a_list_is_walked_to_its_end() {
    let last = buffer(0, 1, 0);
    let first = buffer(address(&*last), 2, 0);
    let head = address(&*first);
    assert_eq!(walked(address(&head)), [(head, 2), (address(&*last), 1)]);
    assert!(walked(8).is_empty());
}

#[test]
fn a_list_without_an_end_is_walked_once() {
    let mut first = buffer(0, 2, 0);
    let second = buffer(address(&*first), 1, 0);
    first[8..16].copy_from_slice(&address(&*second).to_le_bytes());
    let head = address(&*first);
    assert_eq!(walked(address(&head)), [(head, 2), (address(&*second), 1)]);
}
