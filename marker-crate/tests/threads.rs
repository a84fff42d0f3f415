//! Tests threads, forks and signal handlers: the owners of buffers, and that every event arrives.
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

/// Serializes the tests: they count buffers and put functions into the flush.
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
    // The kernel may reuse a thread id.
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
        // The threads are joined, not only scoped: a scope does not wait for the very end of its
        // threads.
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
        // Deeper than one buffer holds, even in the flush of the nested one.
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
        work(252 * 4);
        TID.store(0, Relaxed);
    });
    hook::MEANWHILE.store(0, Relaxed);
    assert_eq!(events_of(tid, &work_sites).len(), 252 * 4 * 2);
    // At least four flushes of the own buffer. Each brings 400 events, whose flushes bring more.
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
            // The list holds the child's one buffer, already emptied of some of 600 events.
            let buffers = list();
            let fine = buffers.len() == 1
                && buffers[0].1.tid() == support::tid()
                && buffers[0].1.events() + buffers[0].1.taken() == 600;
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
    // A slot holds one event or two.
    let delivered = events_of(child as u32, &sites).len();
    assert!((252..=504).contains(&delivered), "{delivered}");
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
static SIGNALS: AtomicU64 = AtomicU64::new(0);
/// The scopes of handlers since the interrupted code last finished a loop.
static SINCE: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_signal(signal: i32) {
    // The runtime gives up a write that has not ended after 65,000 slots. A timer on a slow machine
    // sends signals so often that the interrupted code has no time. Then handlers do nothing until
    // it goes on. The CPU's trap flag always lets it go on.
    if signal == libc::SIGUSR1 && SINCE.load(Relaxed) > 20_000 {
        return;
    }
    // Most handlers do little. Now and then one overfills the buffer. 61 and the length of a loop
    // are coprime, so this eventually happens at every instruction.
    let n = if SIGNALS.fetch_add(1, Relaxed).is_multiple_of(61) { 140 } else { 1 };
    for _ in 0..n {
        let _scope = scope!("handler");
    }
    HANDLED.fetch_add(n, Relaxed);
    SINCE.fetch_add(n, Relaxed);
}

/// Runs `calls` on a thread with `on_signal` as its handler, and checks that every event was
/// delivered once.
fn under_signals(signal: i32, calls: impl FnOnce() -> u64 + Send + 'static) {
    hook::install();
    let (_on, work_sites) = On::new("work");
    let (_on, handler_sites) = On::new("handler");
    let first = hook::flushed_count();
    HANDLED.store(0, Relaxed);
    SIGNALS.store(0, Relaxed);
    SINCE.store(0, Relaxed);
    // SAFETY: a handler that uses scopes and atomics only.
    unsafe { libc::signal(signal, on_signal as *const () as usize) };
    let (tid, calls) = on_thread(calls);
    let handled = HANDLED.load(Relaxed);
    let pages = hook::flushed(first, |of| of == tid);
    let taken = pages.iter().map(Page::taken).sum::<u64>();
    // Torn events have no time and are lost.
    let events = pages.iter().flat_map(Page::slots).filter(|event| event.time != 0);
    let events = events.collect::<Vec<_>>();
    let of = |sites: &[u64]| events.iter().filter(|event| sites.contains(&event.site)).count();
    assert_eq!(of(&work_sites) + of(&handler_sites), events.len());
    let unique = events.iter().collect::<HashSet<_>>();
    assert_eq!(unique.len(), events.len(), "delivered twice");
    assert_eq!(taken, 2 * (calls + handled), "each event is counted");
    assert!(list().iter().all(|(_, page)| page.tid() == 0 && !page.flushing()));
    assert_eq!(taken, events.len() as u64, "each counted event is delivered");
    let signals = SIGNALS.load(Relaxed);
    println!("{calls} calls, {signals} signals, {} flushes, {taken} events", pages.len());
    assert!(signals > 1000, "{signals}");
}

/// The CPU's trap flag sends a signal after every instruction of scopes, of the thread's first
/// buffer and of flushes.
#[test]
fn a_signal_after_every_instruction() {
    let _alone = alone();
    under_signals(libc::SIGTRAP, || {
        // SAFETY: sets the trap flag, whose signal has a handler, and clears it again.
        unsafe { std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
        work(300);
        // SAFETY: likewise.
        unsafe { std::arch::asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
        300
    });
}

/// Signals at random moments, at full speed.
#[test]
fn a_storm_of_signals() {
    let _alone = alone();
    under_signals(libc::SIGUSR1, || {
        let timer = start_timer();
        let first = hook::flushed_count();
        let start = std::time::Instant::now();
        let mut calls = 0;
        while start.elapsed().as_millis() < 2000 && hook::flushed_count() < first + 8_000 {
            work(50);
            calls += 50;
            SINCE.store(0, Relaxed);
        }
        // SAFETY: our timer. A last signal may come until the thread ends.
        unsafe { libc::timer_delete(timer) };
        calls
    });
}

/// A signal to this thread every 20 µs.
fn start_timer() -> libc::timer_t {
    // SAFETY: structures of integers, filled as timer_create(2) says.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGUSR1;
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer = std::mem::zeroed();
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer), 0);
        let often = libc::timespec { tv_sec: 0, tv_nsec: 20_000 };
        let spec = libc::itimerspec { it_interval: often, it_value: often };
        assert_eq!(libc::timer_settime(timer, 0, &raw const spec, std::ptr::null_mut()), 0);
        timer
    }
}

/// Without memory for a buffer there are no events, and the program goes on. A child runs it, since
/// the limit is the process's.
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
