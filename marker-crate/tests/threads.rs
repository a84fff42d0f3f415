//! Threads, forks and signal handlers: who has which buffer, and that every event comes out.
#![allow(unsafe_code, reason = "fork and signals")]

mod support;

use ctrace_marker::scope;
use std::{
    collections::{HashMap, HashSet},
    hint::black_box,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use support::{On, Page, events_of, hook, list, on_thread};

/// Tests here count buffers and put functions into the flush: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline(never)]
fn work(n: u64) {
    for i in 0..n {
        let _scope = scope!("work");
        black_box(i);
    }
}

#[test]
fn the_buffer_of_a_thread_that_ended_is_used_again() {
    let _alone = alone();
    hook::install();
    let (_on, sites) = On::new("work");
    on_thread(|| work(1));
    let before = list().len();
    let registered = hook::registered();
    let first = hook::flushed_count();
    let mut tids = Vec::new();
    for n in 1..300 {
        tids.push((on_thread(move || work(n)).0, n));
    }
    assert_eq!(list().len(), before, "one thread at a time needs one buffer");
    assert_eq!(hook::registered() - registered, 299);
    assert!(list().iter().all(|(_, page)| page.tid() == 0 && page.taken() == 0));
    // The kernel may give a number twice.
    let mut expected = HashMap::new();
    for (tid, n) in tids {
        *expected.entry(tid).or_insert(0) += 2 * n as usize;
    }
    let mut found = HashMap::new();
    for page in hook::flushed(first, |tid| expected.contains_key(&tid)) {
        let events = page.slots().filter(|event| sites.contains(&event.site));
        *found.entry(page.tid()).or_insert(0) += events.count();
    }
    assert_eq!(found, expected);
}

#[test]
fn a_thousand_threads_at_once() {
    let _alone = alone();
    hook::install();
    let (_on, _) = On::new("work");
    let before = hook::flushed_count();
    for _ in 0..2 {
        let barrier = &*Box::leak(Box::new(std::sync::Barrier::new(1000)));
        let thread = || {
            let run = || {
                work(10);
                barrier.wait();
                work(10);
            };
            std::thread::Builder::new().stack_size(64 << 10).spawn(run).unwrap()
        };
        // Joined, and not only scoped: a scope does not wait for the very end of its threads.
        let threads = (0..1000).map(|_| thread()).collect::<Vec<_>>();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    let pages = hook::flushed(before, |_| true);
    assert_eq!(pages.iter().map(Page::taken).sum::<u64>(), 2000 * 40);
    let buffers = list();
    assert!((1000..1100).contains(&buffers.len()), "{}", buffers.len());
    let addresses = buffers.iter().map(|&(address, _)| address).collect::<HashSet<_>>();
    assert_eq!(addresses.len(), buffers.len());
}

#[test]
fn what_a_handler_writes_during_a_flush_comes_out_too() {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    fn meanwhile(_: *const Page) {
        static DEPTH: AtomicU64 = AtomicU64::new(0);
        // Deeper than one buffer holds, in the flush of the nested one as well.
        if DEPTH.fetch_add(1, Relaxed) < 2 {
            CALLS.fetch_add(1, Relaxed);
            for _ in 0..200 {
                let _scope = scope!("meanwhile");
            }
        }
        DEPTH.fetch_sub(1, Relaxed);
    }
    let _alone = alone();
    hook::install();
    let (_on, work_sites) = On::new("work");
    let (_on, meanwhile_sites) = On::new("meanwhile");
    static TID: AtomicU64 = AtomicU64::new(0);
    fn of_our_thread(page: *const Page) {
        if TID.load(Relaxed) == u64::from(support::tid()) {
            meanwhile(page);
        }
    }
    hook::MEANWHILE.store(of_our_thread as *const () as usize, Relaxed);
    let (tid, ()) = on_thread(|| {
        TID.store(support::tid().into(), Relaxed);
        work(126 * 4);
        TID.store(0, Relaxed);
    });
    hook::MEANWHILE.store(0, Relaxed);
    assert_eq!(events_of(tid, &work_sites).len(), 126 * 4 * 2);
    // Four flushes of the own buffer; each brings 400 events, whose flushes bring more.
    let events = events_of(tid, &meanwhile_sites);
    assert_eq!(events.iter().collect::<HashSet<_>>().len(), events.len(), "delivered twice");
    assert_eq!(events.len() as u64, CALLS.load(Relaxed) * 400);
    assert!(events.len() > 4 * 400);
    assert!(list().iter().all(|(_, page)| !page.flushing() && page.tid() == 0));
}

#[test]
fn a_forked_child_has_its_own_events_only() {
    let _alone = alone();
    hook::install();
    let (_on, sites) = On::new("work");
    let (tid, child) = on_thread(|| {
        work(100);
        // SAFETY: the child does nothing but scopes, and leaves by a way that locks nothing.
        let child = unsafe { libc::fork() };
        if child == 0 {
            work(300);
            // The list holds the child's one buffer: of 600 events 252 twice were delivered.
            let buffers = list();
            let fine = buffers.len() == 1
                && buffers[0].1.tid() == support::tid()
                && buffers[0].1.taken() == 600 - 504;
            // SAFETY: ends the process.
            unsafe { libc::_exit(if fine { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: our child; a place for its status.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        work(100);
        child
    });
    assert_eq!(events_of(tid, &sites).len(), 400);
    assert_eq!(events_of(child as u32, &sites).len(), 504);
}

#[test]
fn a_child_of_vfork_leaves_the_list_alone() {
    let _alone = alone();
    hook::install();
    let (_on, sites) = On::new("work");
    let before = list().len();
    let (tid, ()) = on_thread(|| {
        work(10);
        let status = std::process::Command::new("/bin/true").status().unwrap();
        assert!(status.success());
        work(10);
    });
    assert_eq!(events_of(tid, &sites).len(), 40);
    assert!(list().len() <= before + 1);
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(_: i32) {
    // Some handlers fill buffers, most do little.
    let n = if HANDLED.load(Relaxed).is_multiple_of(16) { 140 } else { 3 };
    for _ in 0..n {
        let _scope = scope!("handler");
    }
    HANDLED.fetch_add(n, Relaxed);
}

/// The handler interrupts anything, the slow path and flushes as well: no event is written twice,
/// none is forgotten without a count.
#[test]
fn a_storm_of_signals() {
    let _alone = alone();
    hook::install();
    let (_on, work_sites) = On::new("work");
    let (_on, handler_sites) = On::new("handler");
    let first = hook::flushed_count();
    let stop = &std::sync::atomic::AtomicBool::new(false);
    let calls = std::thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::channel();
        let worker = scope.spawn(move || {
            // SAFETY: a handler that uses scopes and atomics only.
            unsafe { libc::signal(libc::SIGUSR1, on_signal as *const () as usize) };
            send.send((support::tid(), this_thread())).unwrap();
            let mut calls = 0;
            // Many short visits to the slow path of a new buffer would need new threads; flushes
            // come by themselves.
            while !stop.load(Relaxed) {
                work(50);
                calls += 50;
            }
            (support::tid(), calls)
        });
        let (_, thread) = receive.recv().unwrap();
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 1500 && hook::flushed_count() < first + 20_000 {
            // SAFETY: the thread runs until `stop`.
            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
        }
        stop.store(true, Relaxed);
        worker.join().unwrap()
    });
    let (tid, calls) = calls;
    let pages = hook::flushed(first, |of| of == tid);
    let taken = pages.iter().map(Page::taken).sum::<u64>();
    let events = pages.iter().flat_map(Page::slots).collect::<Vec<_>>();
    let unique = events.iter().collect::<HashSet<_>>();
    let handled = HANDLED.load(Relaxed);
    assert_eq!(unique.len(), events.len(), "delivered twice");
    assert!(handled > 1000, "{handled}");
    assert_eq!(taken, 2 * (calls + handled), "a slot for each event");
    let lost = taken - events.len() as u64;
    assert!(lost <= taken / 10_000, "{lost} of {taken} lost");
    assert!(
        events.iter().all(|event| {
            work_sites.contains(&event.site) || handler_sites.contains(&event.site)
        })
    );
    println!("{calls} calls, {handled} in handlers, {} flushes, {lost} lost", pages.len());
}

fn this_thread() -> libc::pthread_t {
    // SAFETY: takes nothing.
    unsafe { libc::pthread_self() }
}

/// Without memory for a buffer there are no events, and nothing else happens. In a child, since the
/// limit is the process's.
#[test]
fn without_memory_the_program_goes_on() {
    let _alone = alone();
    hook::install();
    let (_on, _) = On::new("work");
    // SAFETY: the child does nothing but scopes, and leaves by a way that locks nothing.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a limit for this process; its own errno; the end of the process.
        unsafe {
            libc::setrlimit(libc::RLIMIT_AS, &raw const none);
            *libc::__errno_location() = 42;
            work(1000);
            let errno = *libc::__errno_location();
            libc::_exit(if errno == 42 && list().is_empty() { 0 } else { 1 });
        }
    }
    let mut status = 0;
    // SAFETY: our child; a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}
