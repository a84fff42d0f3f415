//! Bytes of one ring record to a typed event.
//!
//! The bytes come from another address space's program, so nothing about them is believed: the
//! length must fit the kind and the kind must exist. What the numbers mean is judged later.

use crate::marker::{BUFFER_LEN, BufferId, Reading};
use crate::units::{Nanos, Pid, Tid};
use ctrace_common::{CONTROL_LEN, Control, Kind, RECORD_LEN, Record};

/// One record of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// An event of a call.
    Event(Record),
    /// What was in a marker buffer.
    Batch(Reading),
    /// A change in a process.
    Control(Control),
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("no record is {0} bytes long")]
    Length(usize),
    #[error("no record of this length has kind {0}")]
    Kind(u8),
}

/// Decodes one record.
pub fn decode(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    if let Ok(bytes) = <&[u8; RECORD_LEN]>::try_from(bytes) {
        let event = record(bytes);
        return match Kind::from_wire(event.kind) {
            Some(kind) if kind as u8 <= Kind::Point as u8 => Ok(Decoded::Event(event)),
            _ => Err(DecodeError::Kind(event.kind)),
        };
    }
    if bytes.len() > CONTROL_LEN && bytes.len() <= BUFFER_LEN {
        return batch(bytes);
    }
    let bytes =
        <&[u8; CONTROL_LEN]>::try_from(bytes).map_err(|_| DecodeError::Length(bytes.len()))?;
    let control = control(bytes);
    match Kind::from_wire(control.record.kind) {
        Some(kind) if is_control(kind) => Ok(Decoded::Control(control)),
        _ => Err(DecodeError::Kind(control.record.kind)),
    }
}

const fn is_control(kind: Kind) -> bool {
    kind as u8 >= Kind::Fork as u8
}

/// A record that took the place of a marker buffer's first bytes, and the rest of the buffer.
fn batch(bytes: &[u8]) -> Result<Decoded, DecodeError> {
    let head = bytes.first_chunk().ok_or(DecodeError::Length(bytes.len()))?;
    let record = record(head);
    if Kind::from_wire(record.kind) != Some(Kind::Batch) {
        return Err(DecodeError::Kind(record.kind));
    }
    let buffer = BufferId { pid: Pid(record.pid), address: record.sp };
    let (tid, time) = (Tid(record.tid), Nanos(record.ts_ns));
    Ok(Decoded::Batch(Reading::shipped(buffer, tid, time, record.probe, bytes)))
}

fn record(bytes: &[u8; RECORD_LEN]) -> Record {
    Record {
        ts_ns: u64_at(bytes, 0),
        sp: u64_at(bytes, 8),
        pid: u32_at(bytes, 16),
        tid: u32_at(bytes, 20),
        probe: u32_at(bytes, 24),
        kind: bytes[28],
        reserved: bytes[29],
        lost_before: u16::from_le_bytes([bytes[30], bytes[31]]),
    }
}

fn control(bytes: &[u8; CONTROL_LEN]) -> Control {
    let (mut head, mut comm) = ([0; RECORD_LEN], [0; 16]);
    head.copy_from_slice(&bytes[..RECORD_LEN]);
    comm.copy_from_slice(&bytes[RECORD_LEN..RECORD_LEN + 16]);
    Control { record: record(&head), comm, arg0: u64_at(bytes, 48), arg1: u64_at(bytes, 56) }
}

#[inline]
pub(crate) fn u64_at<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
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
            Decoded::Event(record) => record.kind,
            Decoded::Control(control) => control.record.kind,
            Decoded::Batch(_) => Kind::Batch as u8,
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
        check(6, 32, Err(DecodeError::Kind(6)));
        check(8, 32, Err(DecodeError::Kind(8)));
        check(21, 64, Ok(21));
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
    fn every_field_has_its_bytes() {
        let bytes: [u8; 64] = std::array::from_fn(|i| if i == 28 { 19 } else { i as u8 });
        let Ok(Decoded::Control(control)) = decode(&bytes) else { panic!("not a control record") };
        assert_eq!(control.record.ts_ns, 0x0706_0504_0302_0100);
        assert_eq!(control.record.sp, 0x0f0e_0d0c_0b0a_0908);
        assert_eq!(control.record.pid, 0x1312_1110);
        assert_eq!(control.record.tid, 0x1716_1514);
        assert_eq!(control.record.probe, 0x1b1a_1918);
        assert_eq!(control.record.lost_before, 0x1f1e);
        assert_eq!(control.comm[0], 32);
        assert_eq!(control.arg0, 0x3736_3534_3332_3130);
        assert_eq!(control.arg1, 0x3f3e_3d3c_3b3a_3938);
    }
}
