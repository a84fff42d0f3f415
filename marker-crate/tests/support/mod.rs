//! The other side of the marker format, for tests: reads like ctrace, in the same process, and does
//! the kernel's part.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(unsafe_code, reason = "raises semaphores, reads buffers, patches the flush site")]

pub(crate) mod entries;
pub(crate) mod hook;
pub(crate) mod image;

use ctrace_common::{BUFFER_LEN, BUFFER_SLOTS, BufferHeader, HEADER_LEN, MARK_LEN, Mark};
use std::sync::atomic::{AtomicI16, AtomicU64, Ordering::Relaxed};

/// A buffer at one moment.
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
pub(crate) struct Page(pub(crate) [u64; 512]);

impl Page {
    fn header(&self) -> BufferHeader {
        let mut bytes = [0; HEADER_LEN];
        for (piece, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            piece.copy_from_slice(&word.to_le_bytes());
        }
        BufferHeader::from_bytes(&bytes)
    }
    pub(crate) fn magic(&self) -> u64 {
        self.header().magic
    }
    pub(crate) fn next(&self) -> u64 {
        self.header().next
    }
    pub(crate) fn tid(&self) -> u32 {
        self.header().tid
    }
    pub(crate) fn position(&self) -> u32 {
        self.header().position
    }
    pub(crate) fn batch(&self) -> u64 {
        self.header().batch
    }
    pub(crate) fn events(&self) -> u64 {
        self.header().events
    }
    pub(crate) fn clock(&self) -> u8 {
        self.header().clock
    }
    pub(crate) fn flushing(&self) -> bool {
        self.header().flushing != 0
    }
    pub(crate) fn nested(&self) -> u64 {
        self.header().nested
    }
    /// Returns the slots of this batch that hold a whole call.
    pub(crate) fn whole(&self) -> u64 {
        self.header().whole.into()
    }
    /// Returns the events of this batch, as the header counts them.
    pub(crate) fn taken(&self) -> u64 {
        let taken = (self.position() as usize).clamp(HEADER_LEN, BUFFER_LEN) - HEADER_LEN;
        (taken / MARK_LEN) as u64 + self.whole()
    }
    /// Returns the event in a slot, or both of a whole call.
    pub(crate) fn slot(&self, index: usize) -> impl Iterator<Item = Event> + use<> {
        let at = (HEADER_LEN + MARK_LEN * index) / 8;
        let Mark { time: word0, tag } = Mark { time: self.0[at], tag: self.0[at + 1] };
        let time = word0 & ((1 << Mark::TIME_BITS) - 1);
        let low = word0 >> Mark::TIME_BITS << Mark::SP_LOW;
        let rest = tag >> Mark::REST_SHIFT;
        let is_whole = tag & Mark::WHOLE != 0;
        let is_short = is_whole || tag & Mark::KIND == Mark::SAMPLE;
        // For a whole call and a sample: the nearest to the header's, which is below 2^47.
        let near = self.header().stack as i64;
        let beyond = u64::BITS - Mark::SP_NEAR;
        let whole = near + ((low as i64 - near) << beyond >> beyond);
        let sp = if is_short { whole as u64 } else { low | rest << Mark::SP_NEAR };
        let event = Event {
            time,
            exit: tag & Mark::EXIT != 0,
            site: tag & Mark::SITE,
            kind: tag & Mark::KIND,
            sp: sp & ((1 << Mark::SP_HIGH) - 1),
        };
        let exit = Event { time: time + rest, exit: true, ..event };
        (tag != 0).then_some(event).into_iter().chain(is_whole.then_some(exit))
    }
    pub(crate) fn slots(&self) -> impl Iterator<Item = Event> {
        (0..BUFFER_SLOTS).flat_map(|index| self.slot(index))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Event {
    pub(crate) time: u64,
    pub(crate) exit: bool,
    pub(crate) site: u64,
    pub(crate) kind: u64,
    /// The stack pointer, up to multiples of 128 GiB.
    pub(crate) sp: u64,
}

/// Returns the pages of the list, with their addresses.
pub(crate) fn list() -> Vec<(u64, Page)> {
    let mut pages = Vec::new();
    // SAFETY: the runtime section says that this word is the list's head.
    let mut address = unsafe { AtomicU64::from_ptr(image::own().runtime.list as *mut u64) }
        .load(std::sync::atomic::Ordering::Acquire);
    while address != 0 {
        // SAFETY: buffers are never unmapped. Other threads may write meanwhile: read as is.
        let page = unsafe { (address as *const Page).read_volatile() };
        pages.push((address, page));
        address = page.next();
    }
    pages
}

pub(crate) fn tid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { libc::gettid() as u32 }
}

/// Scopes that are on while this lives.
pub(crate) struct On(Vec<u64>);

impl On {
    /// Switches on all entries of this name. Also returns their addresses.
    pub(crate) fn new(name: &str) -> (On, Vec<u64>) {
        let sites = image::own().named(name);
        assert!(!sites.is_empty(), "no scope {name}");
        let semaphores = sites.iter().map(|site| site.semaphore).collect::<Vec<_>>();
        semaphores.iter().for_each(|&at| add(at, 1));
        (On(semaphores), sites.iter().map(|site| site.address).collect())
    }
}

impl Drop for On {
    fn drop(&mut self) {
        self.0.iter().for_each(|&at| add(at, -1));
    }
}

fn add(semaphore: u64, by: i16) {
    // SAFETY: an entry says that this is a semaphore: 16 bits, aligned, writable.
    unsafe { AtomicI16::from_ptr(semaphore as *mut i16) }.fetch_add(by, Relaxed);
}

/// Returns a thread's events at these sites, delivered or still in buffers, in order of time.
pub(crate) fn events_of(tid: u32, sites: &[u64]) -> Vec<Event> {
    let mut events = Vec::new();
    let delivered = hook::flushed(0, |of| of == tid).into_iter();
    let waiting = list().into_iter().map(|(_, page)| page).filter(|page| page.tid() == tid);
    for page in delivered.chain(waiting) {
        events.extend(page.slots().filter(|event| sites.contains(&event.site)));
    }
    events.sort_by_key(|event| event.time);
    events
}

/// Runs it on a thread that has ended on return. Returns its id and its result.
pub(crate) fn on_thread<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> (u32, T) {
    std::thread::spawn(move || (tid(), run())).join().unwrap()
}
