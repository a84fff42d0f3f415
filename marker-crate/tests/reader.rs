//! Reads a buffer that another process fills, as in docs/marker-format.md. Every event arrives
//! exactly once, by a flush or by a read.
#![allow(unsafe_code, reason = "fork and process_vm_readv")]

mod support;

use ctrace_marker::scope;
use std::{
    collections::{HashMap, HashSet},
    hint::black_box,
    time::{Duration, Instant},
};
use support::{Event, On, Page, hook, list};

#[inline(never)]
fn work(n: u64) {
    let _scope = scope!("read from outside");
    black_box(n);
}

/// The child makes calls without end, at uneven speed. At the end it sends their number through a
/// pipe, and leaves its last batch in the buffer.
fn child(pipe: i32, time: Duration) -> ! {
    let mut calls = 0_u64;
    let start = Instant::now();
    while start.elapsed() < time {
        let burst = calls % 97 + 1;
        for n in 0..burst {
            work(n);
        }
        calls += burst;
        // SAFETY: waits a little, so that the reader meets buffers at rest too.
        unsafe { libc::usleep((calls % 300) as u32) };
    }
    // SAFETY: eight bytes to our pipe; then wait to be killed, with the buffer as it is.
    unsafe {
        libc::write(pipe, (&raw const calls).cast(), 8);
        loop {
            libc::pause();
        }
    }
}

fn read(pid: i32, address: u64) -> Option<Page> {
    let mut page = Page([0; 512]);
    let local = libc::iovec { iov_base: (&raw mut page).cast(), iov_len: 4096 };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: 4096 };
    // SAFETY: 4096 bytes of ours to write to; the kernel checks the other's.
    let count =
        unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    (count == 4096).then_some(page)
}

#[derive(Default)]
struct Reader {
    /// Slots read from batches that no flush has brought, by entry and exit.
    taken: HashMap<u64, HashSet<(usize, bool)>>,
    /// The first batch that no flush has brought.
    next: u64,
    events: Vec<Event>,
    live: usize,
}

impl Reader {
    fn flushed(&mut self, page: &Page) {
        assert_eq!(page.batch(), self.next, "a flush is missing");
        let taken = self.taken.remove(&page.batch()).unwrap_or_default();
        self.next += 1;
        for slot in 0..252 {
            let is_new = |event: &Event| !taken.contains(&(slot, event.exit));
            self.events.extend(page.slot(slot).filter(is_new));
        }
    }

    /// Reads three copies. Of the third, only the header counts: a copy can be interrupted after
    /// it.
    fn read(&mut self, pages: &[Page; 3]) {
        let [first, second, _] = pages;
        let batch = first.batch();
        let is_same = |page: &Page| page.batch() == batch && !page.flushing();
        if batch < self.next || !pages.iter().all(is_same) {
            return;
        }
        let taken = self.taken.entry(batch).or_default();
        for slot in 0..252 {
            let was_written = first.slot(slot).next().is_some();
            let mut events = second.slot(slot).filter(|_| was_written).peekable();
            assert!(!was_written || events.peek().is_some(), "an event stays until it is flushed");
            for event in events.filter(|event| taken.insert((slot, event.exit))) {
                self.events.push(event);
                self.live += 1;
            }
        }
    }
}

#[test]
fn every_event_comes_exactly_once() {
    hook::install();
    let (_on, sites) = On::new("read from outside");
    // The list word of the child is where ours is.
    work(0);
    assert!(!list().is_empty());
    let mut pipe = [0; 2];
    // SAFETY: a place for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let first = hook::flushed_count();
    // SAFETY: the child only runs `child`.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        child(pipe[1], Duration::from_millis(1500));
    }
    let list = support::image::own().runtime.list;
    let mut reader = Reader::default();
    let mut brought = first;
    let mut calls = 0_u64;
    // SAFETY: our pipe; reading must not wait.
    unsafe { libc::fcntl(pipe[0], libc::F_SETFL, libc::O_NONBLOCK) };
    let mut readings = 0;
    loop {
        // SAFETY: eight bytes to write to.
        let done = unsafe { libc::read(pipe[0], (&raw mut calls).cast(), 8) } == 8;
        // Buffers come before flushes, so that nothing is missed between them.
        let word = read(pid, list & !4095).map(|page| page.0[(list & 4095) as usize / 8]);
        let buffer = word.filter(|&address| address != 0);
        let pages = buffer.and_then(|at| Some([read(pid, at)?, read(pid, at)?, read(pid, at)?]));
        let pages = pages
            .filter(|pages| pages.iter().all(|page| page.tid() == pid as u32 && page.magic() != 0));
        let flushed = hook::flushed(brought, |tid| tid == pid as u32);
        // A page that is still being copied comes next time.
        for page in &flushed {
            if page.batch() == reader.next {
                reader.flushed(page);
                brought += 1;
            }
        }
        if let Some(pages) = pages {
            reader.read(&pages);
            readings += 1;
        }
        if done {
            break;
        }
    }
    // SAFETY: our child.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
    let unique = reader.events.iter().collect::<HashSet<_>>();
    println!("{calls} calls, {} flushes, {readings} readings brought {}", reader.next, reader.live);
    assert_eq!(unique.len(), reader.events.len(), "an event came twice");
    assert_eq!(unique.len() as u64, 2 * calls);
    assert!(reader.events.iter().all(|event| sites.contains(&event.site) && event.time != 0));
    assert!(reader.live > 1000, "readings bring something");
}
