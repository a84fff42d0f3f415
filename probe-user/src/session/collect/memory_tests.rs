//! The tests read this very process.

use super::*;

/// Returns a buffer as a runtime writes it, with `events` slots taken.
pub(in super::super) fn buffer(next: u64, batch: u64, events: usize) -> Box<[u8; BUFFER_LEN]> {
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

pub(in super::super) fn address<T>(of: &T) -> u64 {
    std::ptr::from_ref(of) as u64
}

pub(in super::super) fn own() -> Pid {
    Pid(std::process::id())
}

/// Returns the memory of this process, with a file of the memory of another program, which has
/// ended.
pub(in super::super) fn elsewhere() -> Memory {
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().expect("sleep");
    let memory = Memory::open(Pid(child.id())).expect("our child");
    child.kill().and_then(|()| child.wait()).expect("it ends");
    Memory { pid: own(), ..memory }
}

/// Returns addresses and batches of the buffers of a list.
fn walked(head: u64) -> Vec<(u64, u64)> {
    let memory = Memory::open(own()).unwrap();
    let mut found = Vec::new();
    walk(&memory, head, &mut HashSet::new(), |address, _, header| {
        found.push((address, header.batch))
    });
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

fn pieces_of(memory: &Memory, addresses: &[u64]) -> Vec<Option<u64>> {
    let mut words = vec![[0; 8]; addresses.len()];
    let pieces = addresses.iter().zip(&mut words);
    let mut pieces: Vec<_> = pieces.map(|(at, word)| Piece::new(*at, word)).collect();
    memory.read_pieces(&mut pieces);
    let is_read: Vec<_> = pieces.iter().map(|piece| piece.is_read).collect();
    let words = words.into_iter().map(u64::from_ne_bytes);
    is_read.into_iter().zip(words).map(|(is_read, word)| is_read.then_some(word)).collect()
}

#[test]
fn the_file_does_what_the_call_cannot() {
    let (first, second) = (7_u64, 9_u64);
    let addresses = [address(&first), 8, address(&second)];
    let mut memory = Memory::open(own()).unwrap();
    assert_eq!(pieces_of(&memory, &addresses), [Some(7), None, Some(9)]);
    // No process has this id.
    memory.pid = Pid(u32::MAX >> 1);
    assert_eq!(pieces_of(&memory, &addresses), [Some(7), None, Some(9)]);
}
