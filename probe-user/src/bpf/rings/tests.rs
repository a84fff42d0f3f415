use super::{super::sys::fake, *};
use ctrace_common::{COUNT_SHIFT, Kind};
use std::fs::File;

const BYTES: usize = 4096;
const SLOTS: usize = BYTES / SLOT_LEN;
const ENTER: u8 = Kind::Enter as u8;
const FORK: u8 = Kind::Fork as u8;

/// The memory of a ring in a file, with the programs' operations on it.
struct FakeRing {
    file: OwnedFd,
    pages: Mapping,
    writer: u64,
}

impl FakeRing {
    fn new() -> Self {
        let file = rustix::fs::memfd_create("ring", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, (PAGE_LEN + BYTES) as u64).unwrap();
        let pages = Mapping::new(file.as_raw_fd(), PAGE_LEN + BYTES, 0).unwrap();
        Self { file, pages, writer: 0 }
    }

    /// Takes slots for a record, and returns their position.
    fn reserve(&mut self, slots: usize) -> u64 {
        let position = self.writer;
        self.writer += slots as u64;
        self.memory()[WRITER_WORD] = self.writer;
        position
    }

    /// Writes `words` into the slots at `position`, and the kind into its place.
    fn commit(&mut self, position: u64, kind: u8, words: &[u64]) {
        assert_eq!(words.len(), 4 * slots_of(u64::from(kind) << 32));
        self.write(position, kind, words);
    }

    /// The same for a record that says its own length.
    fn write(&mut self, position: u64, kind: u8, words: &[u64]) {
        for (index, word) in words.iter().enumerate() {
            let at = (position as usize * 4 + index) % (BYTES / 8);
            self.memory()[PAGE_LEN / 8 + at] = *word;
        }
        let commit = (position as usize * 4 + COMMIT_WORD) % (BYTES / 8);
        self.memory()[PAGE_LEN / 8 + commit] = u64::from(kind) << 32 | words[COMMIT_WORD];
    }

    fn put(&mut self, kind: u8, word: u64) {
        let slots = slots_of(u64::from(kind) << 32);
        let position = self.reserve(slots);
        self.commit(position, kind, &vec![word; 4 * slots]);
    }

    /// Puts a marker buffer of `slots` slots, or as many skipped ones.
    fn put_many(&mut self, kind: Kind, slots: usize) {
        let position = self.reserve(slots);
        let mut words = vec![7; 4 * slots];
        words[COMMIT_WORD] = (slots as u64) << COUNT_SHIFT;
        for (index, word) in words.iter().enumerate() {
            self.memory()[PAGE_LEN / 8 + position as usize * 4 + index] = *word;
        }
        let commit = PAGE_LEN / 8 + position as usize * 4 + COMMIT_WORD;
        self.memory()[commit] |= (kind as u64) << 32;
    }

    fn ring(&self) -> Ring {
        Ring::map(&self.file, RingLayout::new(1, BYTES as u32).unwrap(), 0).unwrap()
    }

    fn memory(&mut self) -> &mut [u64] {
        let words = self.pages.address().cast();
        // SAFETY: as many words as the mapping has. A ring sees them through a mapping of its own.
        unsafe { std::slice::from_raw_parts_mut(words, self.pages.len() / 8) }
    }

    fn read(&mut self) -> u64 {
        self.memory()[READER_WORD]
    }
}

/// Returns kind, first word and length of each record.
fn drain(ring: &mut Ring) -> (Vec<(u8, u64, usize)>, bool) {
    let mut records = Vec::new();
    let (count, blocked) = ring.drain(|record| {
        let word = |at| u64::from_le_bytes(record[at * 8..at * 8 + 8].try_into().unwrap());
        // All words are equal, except the one with the kind.
        let whole = (0..record.len() / 8).all(|at| at == COMMIT_WORD || word(at) == word(0));
        assert!(whole, "{record:x?}");
        records.push((record[28], word(0), record.len()));
    });
    assert_eq!(count, records.len());
    (records, blocked)
}

#[test]
fn a_marker_buffer_fills_many_slots() {
    let mut fake = FakeRing::new();
    fake.put(ENTER, 1);
    fake.put_many(Kind::Skip, 7);
    fake.put_many(Kind::Batch, 8);
    fake.put(ENTER, 2);
    let mut ring = fake.ring();
    let mut lengths = Vec::new();
    assert_eq!(ring.drain(|record| lengths.push(record.len())), (3, false));
    assert_eq!(lengths, [32, 256, 32]);
    assert!(fake.memory()[PAGE_LEN / 8..].chunks(4).all(|slot| slot[COMMIT_WORD] == 0));
}

#[test]
fn payloads_of_every_length_lie_around_the_end() {
    const WORD: u64 = 0x0102_0304_0506_0708;
    for slots in 2..=PAYLOAD_SLOTS {
        for before in 1..=slots as u64 {
            let mut fake = FakeRing::new();
            let mut ring = fake.ring();
            for _ in before..SLOTS as u64 {
                fake.put(ENTER, 1);
            }
            drain(&mut ring);
            // Values may look like commit words.
            let mut words = vec![WORD; 4 * slots];
            words[COMMIT_WORD] = (slots as u64) << COUNT_SHIFT;
            let position = fake.reserve(slots);
            fake.write(position, Kind::Payload as u8, &words);
            fake.put(ENTER, 2);
            let mut records = Vec::new();
            assert_eq!(ring.drain(|record| records.push(record.to_vec())), (2, false));
            words[COMMIT_WORD] |= (Kind::Payload as u64) << 32;
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(records[0], bytes, "{slots} slots, {before} before the end");
            assert_eq!(records[1].len(), SLOT_LEN);
            assert!(fake.memory()[PAGE_LEN / 8..].chunks(4).all(|slot| slot[COMMIT_WORD] == 0));
        }
    }
}

#[test]
fn records_come_once_and_in_order() {
    let mut fake = FakeRing::new();
    let mut ring = fake.ring();
    assert_eq!(drain(&mut ring), (vec![], false));
    fake.put(ENTER, 1);
    fake.put(FORK, 2);
    fake.put(ENTER, 3);
    let expected = vec![(ENTER, 1, 32), (FORK, 2, 64), (ENTER, 3, 32)];
    assert_eq!(drain(&mut ring), (expected, false));
    assert_eq!(fake.read(), 4);
    assert_eq!(drain(&mut ring), (vec![], false));
}

#[test]
fn a_record_being_written_blocks_those_behind_it() {
    let mut fake = FakeRing::new();
    let mut ring = fake.ring();
    fake.put(ENTER, 1);
    let slow = fake.reserve(1);
    fake.put(ENTER, 3);
    assert_eq!(drain(&mut ring), (vec![(ENTER, 1, 32)], true));
    assert_eq!(fake.read(), slow);
    fake.commit(slow, ENTER, &[2; 4]);
    assert_eq!(drain(&mut ring), (vec![(ENTER, 2, 32), (ENTER, 3, 32)], false));
}

#[test]
fn what_was_read_is_not_there_on_the_next_round() {
    let mut fake = FakeRing::new();
    let mut ring = fake.ring();
    for word in 0..SLOTS as u64 / 2 {
        fake.put(FORK, word);
    }
    assert_eq!(drain(&mut ring).0.len(), SLOTS / 2);
    for _ in 0..SLOTS {
        fake.reserve(1);
        assert_eq!(drain(&mut ring), (vec![], true));
    }
}

#[test]
fn records_go_round() {
    let mut fake = FakeRing::new();
    let mut ring = fake.ring();
    let mut seen = 0;
    for n in 0..3000u64 {
        fake.put(ENTER, n);
        if n % 50 == 0 {
            for record in drain(&mut ring).0 {
                assert_eq!(record, (ENTER, seen, 32));
                seen += 1;
            }
        }
    }
    assert!(seen > 2900);
    assert!(ring.fill() > 0.0 && ring.fill() < 1.0);
}

#[test]
fn a_control_record_lies_around_the_end() {
    let mut fake = FakeRing::new();
    let mut ring = fake.ring();
    for word in 1..SLOTS as u64 {
        fake.put(ENTER, word);
    }
    assert_eq!(drain(&mut ring).0.len(), SLOTS - 1);
    fake.put(FORK, 7);
    fake.put(ENTER, 8);
    assert_eq!(drain(&mut ring), (vec![(FORK, 7, 64), (ENTER, 8, 32)], false));
}

#[test]
fn room_comes_back_in_pieces() {
    let mut fake = FakeRing::new();
    let mut ring = fake.ring();
    for word in 0..SLOTS as u64 {
        fake.put(ENTER, word);
    }
    assert_eq!(ring.fill(), 1.0);
    let memory = fake.memory().as_ptr();
    let mut seen = Vec::new();
    // SAFETY: a word of the fake's memory, which lives as long.
    ring.drain(|_| seen.push(unsafe { memory.add(READER_WORD).read_volatile() }));
    seen.dedup();
    let pieces: Vec<_> = (0..8).map(|piece| piece * SLOTS as u64 / 8).collect();
    assert_eq!(seen, pieces);
}

#[test]
fn refusals_are_told() {
    let layout = RingLayout::new(2, 4096).unwrap();
    let null: OwnedFd = File::open("/dev/null").unwrap().into();
    let _fake = fake::Fake::failing(libc::ENOMEM);
    assert!(matches!(Rings::map(&null, layout), Err(BpfError::Create { .. })));
    assert_eq!(try_out().unwrap_err().raw_os_error(), Some(libc::ENOMEM));
}
