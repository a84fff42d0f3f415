//! Decodes the bytes of one ring record to a typed event. No later stage looks at bytes.
//!
//! The bytes come from a program in another address space, so nothing about them is trusted: the
//! length must fit the kind, the kind must exist, and reserved bits must be 0. Later stages judge
//! the meaning of the numbers.

use crate::ingest::{change::ProcessEvent, error::DecodeError, event::Event};
use crate::marker::{BUFFER_LEN, BufferId, Reading};
use crate::units::{Nanos, Pid, Tid};
use crate::values::RingPayload;
use ctrace_common::{CONTROL_LEN, Change, Kind, RECORD_LEN, Record};

/// One record of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// An event of a call.
    Event(Event),
    /// The values of an event.
    Payload(RingPayload),
    /// A change in a process.
    Change(ProcessEvent),
    /// The contents of a marker buffer.
    Buffer(Reading),
}

/// Decodes one record.
#[inline]
pub fn decode(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    match Event::from_wire(bytes) {
        Some(event) => Ok(Decoded::Event(event)),
        None => decode_rare(bytes),
    }
}

/// Decodes a record that is no usual event of a call.
#[cold]
fn decode_rare(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let Some((head, rest)) = bytes.split_first_chunk() else {
        return Err(DecodeError::Length(bytes.len()));
    };
    let record = Record::from_bytes(head);
    let reserved = DecodeError::Reserved(record.kind);
    let decoded = match (Kind::from_wire(record.kind), bytes.len()) {
        (Some(kind), RECORD_LEN) if kind.is_event() => Decoded::Event(record.into()),
        (Some(kind), CONTROL_LEN) if kind.is_change() => {
            let slot = rest.first_chunk().ok_or(DecodeError::Length(bytes.len()))?;
            let change = Change::from_bytes(kind, slot).ok_or(reserved)?;
            let (time, lost_before) = (Nanos(record.ts_ns), record.lost_before);
            let (pid, tid) = (Pid(record.pid), Tid(record.tid));
            Decoded::Change(ProcessEvent { time, pid, tid, lost_before, change })
        }
        (Some(Kind::Payload), CONTROL_LEN..=BUFFER_LEN) => {
            Decoded::Payload(RingPayload::from_wire(&record, rest)?)
        }
        (Some(Kind::Batch), CONTROL_LEN..=BUFFER_LEN) => {
            let buffer = BufferId { pid: Pid(record.pid), address: record.sp };
            let (tid, time) = (Tid(record.tid), Nanos(record.ts_ns));
            Decoded::Buffer(Reading::shipped(buffer, tid, time, record.probe, bytes))
        }
        (_, RECORD_LEN | CONTROL_LEN..=BUFFER_LEN) => return Err(DecodeError::Kind(record.kind)),
        (_, length) => return Err(DecodeError::Length(length)),
    };
    if record.reserved != 0 { Err(reserved) } else { Ok(decoded) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: u8, len: usize, expected: Result<u8, DecodeError>) {
        let mut bytes = vec![0; len];
        if let Some(byte) = bytes.get_mut(28) {
            *byte = kind;
        }
        let got = decode(&bytes).map(|decoded| match decoded {
            Decoded::Event(event) => event.kind().map_or(0, |kind| kind as u8),
            Decoded::Payload(_) => Kind::Payload as u8,
            Decoded::Change(event) => event.change.kind() as u8,
            Decoded::Buffer(_) => Kind::Batch as u8,
        });
        assert_eq!(got, expected, "kind {kind}, {len} bytes");
    }

    #[test]
    fn length_and_kind_must_agree() {
        check(1, 32, Ok(1));
        check(5, 32, Ok(5));
        check(16, 64, Ok(16));
        check(20, 64, Ok(20));
        check(16, 32, Err(DecodeError::Kind(16)));
        check(1, 64, Err(DecodeError::Kind(1)));
        check(0, 32, Err(DecodeError::Kind(0)));
        check(6, 32, Ok(6));
        check(7, 32, Ok(7));
        check(11, 32, Ok(11));
        check(12, 32, Ok(12));
        check(11, 64, Err(DecodeError::Kind(11)));
        check(13, 32, Ok(13));
        check(14, 32, Ok(14));
        check(15, 32, Ok(15));
        check(15, 64, Err(DecodeError::Kind(15)));
        check(8, 32, Err(DecodeError::Kind(8)));
        check(21, 64, Ok(21));
        check(22, 64, Ok(22));
        check(22, 32, Err(DecodeError::Kind(22)));
        check(23, 64, Ok(23));
        check(24, 64, Err(DecodeError::Kind(24)));
        check(9, 32, Err(DecodeError::Kind(9)));
        check(10, 32, Err(DecodeError::Kind(10)));
        check(10, 4096, Ok(10));
        check(1, 4096, Err(DecodeError::Kind(1)));
        check(255, 64, Err(DecodeError::Kind(255)));
        check(1, 0, Err(DecodeError::Length(0)));
        check(1, 31, Err(DecodeError::Length(31)));
        check(1, 33, Err(DecodeError::Length(33)));
        check(16, 65, Err(DecodeError::Kind(16)));
        check(10, 256, Ok(10));
        check(10, 4097, Err(DecodeError::Length(4097)));
    }

    #[test]
    fn reserved_bits_must_be_0() {
        for (kind, len) in [(1, 32), (5, 32), (7, 32), (11, 32), (10, 256), (17, 64)] {
            for bit in 0..8 {
                let mut bytes = vec![0; len];
                (bytes[28], bytes[29]) = (kind, 1 << bit);
                assert_eq!(decode(&bytes), Err(DecodeError::Reserved(kind)));
            }
        }
        // One bit above the 32 bits of a thread's id, and one beside the flag.
        for (kind, at) in [(16, 52), (17, 56)] {
            let mut bytes = [0; 64];
            (bytes[28], bytes[at]) = (kind, 2);
            assert_eq!(decode(&bytes), Err(DecodeError::Reserved(kind)));
        }
    }

    #[test]
    fn every_field_has_its_bytes() {
        let mut bytes: [u8; 64] = std::array::from_fn(|i| if i == 28 { 21 } else { i as u8 });
        bytes[29] = 0;
        bytes[40..48].fill(0);
        let expected = ProcessEvent {
            time: Nanos(0x0706_0504_0302_0100),
            pid: Pid(0x1312_1110),
            tid: Tid(0x1716_1514),
            lost_before: 0x1f1e,
            change: Change::Buffer {
                runtime: 0x2322_2120,
                inside: 0x2726_2524,
                address: 0x3736_3534_3332_3130,
                site: 0x3f3e_3d3c_3b3a_3938,
            },
        };
        assert_eq!(decode(&bytes), Ok(Decoded::Change(expected)));
    }
}
