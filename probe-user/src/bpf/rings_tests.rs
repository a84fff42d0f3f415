use super::{super::sys::fake, *};
use std::fs::File;

const BYTES: usize = 4096;

/// A ring over our own memory: reader page, writer page, data twice (here: copied).
struct FakeRing {
    memory: Vec<u64>,
    page: usize,
}

impl FakeRing {
    fn new() -> Self {
        let page = rustix::param::page_size();
        Self { memory: vec![0; (2 * page + 2 * BYTES) / 8], page }
    }

    fn data(&self) -> usize {
        2 * self.page / 8
    }

    /// Writes a record at `position`, in both copies of the data, and moves the writer on.
    fn put(&mut self, position: usize, header: u32, words: &[u64]) -> usize {
        let data = self.data();
        for (index, word) in [u64::from(header)].iter().chain(words).enumerate() {
            let at = (position / 8 + index) % (BYTES / 8);
            self.memory[data + at] = *word;
            self.memory[data + at + BYTES / 8] = *word;
        }
        let end = position + 8 + words.len() * 8;
        let writer = self.page / 8;
        self.memory[writer] = end as u64;
        end
    }

    fn ring(&mut self) -> (Ring, fake::Fake) {
        let (base, page) = (self.memory.as_mut_ptr() as usize, self.page);
        let fake = fake::Fake::new(move |call| match call {
            sys::Syscall::Map { offset, .. } => Ok(base + offset),
            _ => fake::error(libc::ENOSYS),
        });
        let fd = Arc::new(File::open("/dev/null").unwrap().into());
        let ring = Ring::map(fd, BYTES).unwrap();
        assert_eq!(ring.page, page);
        (ring, fake)
    }

    fn reader(&self) -> u64 {
        self.memory[0]
    }
}

/// The memory is not the kernel's: it must not be unmapped.
fn forget(ring: Ring) {
    let Ring { reader, writer, .. } = ring;
    std::mem::forget(reader);
    std::mem::forget(writer);
}

fn drain(ring: &mut Ring) -> (Vec<Vec<u8>>, bool) {
    let mut records = Vec::new();
    let (count, blocked) = ring.drain(|record| records.push(record.to_vec()));
    assert_eq!(count, records.len());
    (records, blocked)
}

#[test]
fn records_come_once_and_in_order() {
    let mut fake = FakeRing::new();
    let (mut ring, _fake) = fake.ring();
    assert_eq!(drain(&mut ring), (vec![], false));
    let mut end = fake.put(0, 8, &[1]);
    end = fake.put(end, 16, &[2, 3]);
    let (records, blocked) = drain(&mut ring);
    assert_eq!(records.iter().map(Vec::len).collect::<Vec<_>>(), [8, 16]);
    assert!(!blocked);
    assert_eq!(fake.reader(), end as u64);
    assert_eq!(drain(&mut ring), (vec![], false));
    forget(ring);
}

#[test]
fn a_record_being_written_blocks_those_behind_it() {
    let mut fake = FakeRing::new();
    let (mut ring, _fake) = fake.ring();
    let first = fake.put(0, 8, &[1]);
    let second = fake.put(first, 8 | BUSY, &[0]);
    fake.put(second, 8, &[3]);
    assert_eq!(drain(&mut ring), (vec![vec![1, 0, 0, 0, 0, 0, 0, 0]], true));
    assert_eq!(fake.reader(), first as u64);
    fake.put(first, 8, &[2]);
    fake.put(second, 8, &[3]);
    let (records, blocked) = drain(&mut ring);
    assert_eq!((records.len(), blocked), (2, false));
    forget(ring);
}

#[test]
fn discarded_records_are_passed_over() {
    let mut fake = FakeRing::new();
    let (mut ring, _fake) = fake.ring();
    let end = fake.put(0, 8 | DISCARDED, &[1]);
    let end = fake.put(end, 8, &[2]);
    assert_eq!(drain(&mut ring).0, [vec![2, 0, 0, 0, 0, 0, 0, 0]]);
    assert_eq!(fake.reader(), end as u64);
    forget(ring);
}

#[test]
fn records_go_round() {
    let mut fake = FakeRing::new();
    let (mut ring, _fake) = fake.ring();
    let (mut end, mut seen) = (0, 0);
    for n in 0..3000u64 {
        end = fake.put(end, 32, &[n, n, n, n]);
        if n % 50 == 0 {
            for record in drain(&mut ring).0 {
                assert_eq!(record, [seen; 4].map(u64::to_le_bytes).concat());
                seen += 1;
            }
        }
    }
    assert!(seen > 2900);
    forget(ring);
}

#[test]
fn sizes_the_kernel_would_refuse_are_refused_here() {
    for bytes in [0, 1, 100, 4095, 5000, 1 << 31] {
        assert!(matches!(create(1, bytes), Err(BpfError::RingSize { .. })), "{bytes}");
    }
}

#[test]
fn refusals_are_told() {
    for (errno, hint) in [
        (libc::ENOMEM, "make the rings smaller"),
        (libc::EMFILE, "ulimit -n"),
        (libc::EINVAL, "needs Linux"),
        (libc::ENOSPC, "2 rings of 4096 bytes"),
    ] {
        let _fake = fake::Fake::failing(errno);
        let error = create(2, 4096).unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
    }
    let _fake = fake::Fake::failing(libc::EPERM);
    assert!(matches!(create(2, 4096), Err(BpfError::Permission { .. })));
    let fd: Arc<OwnedFd> = Arc::new(File::open("/dev/null").unwrap().into());
    assert!(matches!(Rings::map(vec![Arc::clone(&fd)], 4096), Err(BpfError::Create { .. })));
    assert!(matches!(store(&fd, &[Arc::clone(&fd)], &[0], 1), Err(BpfError::Map { .. })));
}

#[test]
fn cpus_that_are_not_there_yet_share_rings() {
    let stored = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = std::rc::Rc::clone(&stored);
    let _fake = fake::Fake::new(move |call| {
        let sys::Syscall::Bpf { command: 2, attr } = call else { panic!("no update") };
        let (key, value) = (attr.get_u64(8) as *const u32, attr.get_u64(16) as *const i32);
        // SAFETY: the caller's key and value.
        seen.borrow_mut().push(unsafe { (*key, value.read_unaligned()) });
        Ok(0)
    });
    let open = || Arc::new(File::open("/dev/null").unwrap().into());
    let rings: Vec<Arc<OwnedFd>> = vec![open(), open()];
    let fd = |index: usize| rings[index].as_raw_fd();
    store(&rings[0], &rings, &[0, 2], 4).unwrap();
    assert_eq!(*stored.borrow(), [(0, fd(0)), (1, fd(1)), (2, fd(1)), (3, fd(1))]);
}
