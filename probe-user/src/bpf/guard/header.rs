//! The fixed part of a request to the guard.

pub(super) const HEADER_BYTES: usize = 40;

/// The number of a question and of the link that it asks for. ctrace chooses it.
pub(super) type Id = u64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageHeader {
    pub(super) what: u32,
    pub(super) flags: u32,
    pub(super) id: Id,
    pub(super) attach: u32,
    pub(super) count: u32,
    pub(super) pid: u32,
    pub(super) unit: u32,
    pub(super) return_bit: u32,
}

impl MessageHeader {
    /// Makes a header with the number of guards in two words.
    pub(super) fn of_guards(guards: Id) -> Self {
        Self { count: guards as u32, pid: (guards >> 32) as u32, ..Self::default() }
    }

    pub(super) fn guards(&self) -> Id {
        Id::from(self.pid) << 32 | Id::from(self.count)
    }

    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let Self { what, flags, id, attach, count, pid, unit, return_bit } = self;
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&id.to_le_bytes());
        let words = [what, flags, attach, count, pid, unit, return_bit];
        for (to, word) in bytes[8..].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Self {
        let word = |index: usize| {
            let at = 8 + 4 * index;
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let mut id = [0; 8];
        id.copy_from_slice(&bytes[..8]);
        Self {
            id: Id::from_le_bytes(id),
            what: word(0),
            flags: word(1),
            attach: word(2),
            count: word(3),
            pid: word(4),
            unit: word(5),
            return_bit: word(6),
        }
    }
}
