//! The tests read this very process.

use super::super::memory::tests::{address, buffer, elsewhere, own};
use super::*;
use ctrace_core::{marker::BufferId, units::Tid};

fn owned(address: u64) -> OwnedBuffer {
    OwnedBuffer { id: BufferId { pid: own(), address }, tid: Tid(9), inside: 5 }
}

/// Returns for each buffer the number of slots in its reading, or the reason why there is none.
fn taken(memory: &Memory, addresses: &[u64]) -> Vec<Result<Option<usize>, Unreadable>> {
    let buffers: Vec<_> = addresses.iter().map(|address| owned(*address)).collect();
    let readings = read_twice(memory, &buffers).into_iter().zip(addresses);
    let slots = readings.map(|(reading, address)| {
        let Some(reading) = reading? else { return Ok(None) };
        assert_eq!((reading.buffer.address, reading.tid), (*address, Tid(9)));
        assert_eq!(reading.before.as_ref(), Some(&reading.bytes));
        Ok(Header::parse(&reading.bytes[..]).map(|header| header.taken()))
    });
    slots.collect()
}

#[test]
fn each_buffer_is_read_for_itself() {
    let (first, mut flushed, last) = (buffer(0, 0, 3), buffer(0, 1, 9), buffer(0, 2, 252));
    flushed[41] = 1;
    let addresses = [address(&*first), 8, address(&*flushed), address(&*last)];
    let memory = Memory::open(own()).unwrap();
    let expected = [Ok(Some(3)), Err(Unreadable), Ok(None), Ok(Some(252))];
    assert_eq!(taken(&memory, &addresses), expected);
}

/// The bytes that were read may be of the program that the process runs now.
#[test]
fn nothing_is_read_of_two_programs() {
    let bytes = buffer(0, 0, 3);
    let memory = elsewhere();
    assert!(headers(&memory, &[address(&*bytes)]).iter().all(|header| header.is_some()));
    assert_eq!(taken(&memory, &[address(&*bytes)]), [Err(Unreadable)]);
}
