//! Takes locks a known number of times. One is held until the other thread sleeps in its wait, and then
//! for a while.

use ctrace_marker::{Condvar, Mutex, RwLock, scope, thread_name};
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

const ROUNDS: u32 = 5;
const ALONE: u32 = 300;
const READS: u32 = 12;
const JOBS_DONE: u32 = 6;

static HELD: Mutex<u32> = Mutex::named("pool \x1b[2J", 0);
static ALONE_LOCK: Mutex<u32> = Mutex::named("alone", 0);
static TABLE: RwLock<u32> = RwLock::named("table", 0);
static JOBS: Mutex<(u32, bool)> = Mutex::named("jobs", (0, false));
static NEW_JOB: Condvar = Condvar::new();
static UNNAMED: Mutex<u32> = Mutex::new(0);
static WAITER: AtomicU32 = AtomicU32::new(0);
static ROUND: AtomicU32 = AtomicU32::new(0);
static RELEASED: AtomicU32 = AtomicU32::new(0);

fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

/// Waits until a thread sleeps in a futex.
fn until_it_sleeps(tid: u32) {
    let path = format!("/proc/self/task/{tid}/syscall");
    while !std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with("202 ")) {
        pause();
    }
}

#[inline(never)]
fn hold(round: u32) {
    let _scope = scope!("holds it");
    let mut held = HELD.lock().unwrap();
    ROUND.store(round, SeqCst);
    until_it_sleeps(WAITER.load(SeqCst));
    std::thread::sleep(Duration::from_millis(20));
    *held += 1;
}

#[inline(never)]
fn wait(round: u32) {
    let _scope = scope!("waits for it");
    while ROUND.load(SeqCst) < round {
        pause();
    }
    assert!(HELD.try_lock().is_err());
    *HELD.lock().unwrap() += 1;
    RELEASED.store(round, SeqCst);
}

fn waiter() {
    thread_name("waiter");
    let own = std::fs::read_link("/proc/thread-self").unwrap();
    WAITER.store(own.file_name().unwrap().to_str().unwrap().parse().unwrap(), SeqCst);
    (1..=ROUNDS).for_each(wait);
    alone();
}

#[inline(never)]
fn alone() {
    for _ in 0..ALONE {
        *ALONE_LOCK.lock().unwrap() += 1;
    }
}

/// Holds that end in another order, and after the scope in which they began.
#[inline(never)]
fn overlap() {
    let (one, two) = (Box::new(Mutex::named("heap", 1)), Mutex::named("stack", 2));
    let outer = scope!("outer");
    let inner = scope!("inner");
    let first = one.lock().unwrap();
    let second = two.lock().unwrap();
    inner.end();
    drop(first);
    outer.end();
    black_box(*second);
}

/// One thread waits for each job of the other, which it has told that it waits.
fn conditions() {
    let worker = std::thread::spawn(|| {
        for _ in 0..JOBS_DONE {
            let _scope = scope!("next job");
            let mut jobs = JOBS.lock().unwrap();
            jobs.1 = true;
            NEW_JOB.notify_one();
            jobs = NEW_JOB.wait_while(jobs, |jobs| jobs.0 == 0).unwrap();
            jobs.0 -= 1;
        }
    });
    for _ in 0..JOBS_DONE {
        let mut jobs = JOBS.lock().unwrap();
        while !jobs.1 {
            jobs = NEW_JOB.wait(jobs).unwrap();
        }
        drop(jobs);
        std::thread::sleep(Duration::from_millis(10));
        *JOBS.lock().unwrap() = (1, false);
        NEW_JOB.notify_one();
    }
    worker.join().unwrap();
}

fn main() {
    conditions();
    let waiter = std::thread::spawn(waiter);
    while WAITER.load(SeqCst) == 0 {
        pause();
    }
    for round in 1..=ROUNDS {
        hold(round);
        while RELEASED.load(SeqCst) < round {
            pause();
        }
    }
    waiter.join().unwrap();
    alone();
    for _ in 0..READS {
        let both = (TABLE.read().unwrap(), TABLE.read().unwrap());
        black_box(*both.0);
    }
    *TABLE.write().unwrap() += 1;
    *UNNAMED.lock().unwrap() += 1;
    (0..7).for_each(|_| overlap());
}
