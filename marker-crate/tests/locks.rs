//! Tests locks: what is in the program, what comes out, and that those that are off do nothing else.
#![allow(unsafe_code, reason = "forks, and gives up system calls")]

mod support;

use ctrace_common::SiteEntry;
use ctrace_marker::{Condvar, Mutex, RwLock};
use std::{
    sync::{Arc, MutexGuard, PoisonError, mpsc},
    time::Duration,
};
use support::{
    On,
    entries::{Read, written_by},
    events_of, hook,
    image::own,
    list, on_thread, tid,
};

const WAITS: [&str; 4] = ["mutex wait", "condition wait", "rwlock read wait", "rwlock write wait"];
const POINTS: [&str; 7] = [
    "mutex lock",
    "mutex unlock",
    "mutex refused",
    "rwlock read lock",
    "rwlock write lock",
    "rwlock unlock",
    "rwlock refused",
];
const NAME: &str = "lock name";

/// Markers are the same for all locks, so the tests take turns.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Markers that are on, and the addresses of their entries.
struct Locks(Vec<(&'static str, On, Vec<u64>)>);

impl Locks {
    fn on() -> Locks {
        let names = WAITS.into_iter().chain(POINTS).chain([NAME]);
        let on = names.map(|name| {
            let (on, sites) = On::new(name);
            (name, on, sites)
        });
        Locks(on.collect())
    }

    fn sites(&self, name: &str) -> &[u64] {
        &self.0.iter().find(|(of, ..)| *of == name).unwrap().2
    }

    /// Returns how often a thread has written each of these about a lock.
    fn counts<const N: usize>(&self, read: &Read, lock: u64, names: [&str; N]) -> [usize; N] {
        names.map(|name| {
            let values = read.values(self.sites(name));
            values.into_iter().filter(|values| values[0] == lock).count()
        })
    }
}

fn address<T>(lock: &T) -> u64 {
    std::ptr::from_ref(lock) as u64
}

#[test]
fn the_program_has_each_marker_once() {
    let check = |name: &str, flags, values: &str| {
        let sites = own().named(name);
        let line = sites[0].line;
        assert!(!sites.is_empty(), "{name}");
        for site in sites {
            assert_eq!(
                (site.flags, site.shape, site.level, site.line),
                (flags, 0, 0, line),
                "{name}"
            );
            assert_eq!(
                (site.group.as_deref(), site.values.as_deref()),
                (Some("locks"), Some(values))
            );
        }
    };
    WAITS.into_iter().for_each(|name| check(name, SiteEntry::VALUES, "lock:u64"));
    let point = SiteEntry::POINT | SiteEntry::VALUES;
    POINTS.into_iter().for_each(|name| check(name, point, "lock:u64"));
    check(NAME, point, "lock:u64,name:str");
}

#[test]
fn a_free_lock_is_taken_with_one_point_and_told_now_and_then() {
    let _alone = alone();
    hook::install();
    let lock = Arc::new(Mutex::named("pool", 0));
    let run = || {
        let lock = Arc::clone(&lock);
        on_thread(move || (0..100).for_each(|_| *lock.lock().unwrap() += 1)).0
    };
    let at = address(&*lock);
    for _ in 0..2 {
        let on = Locks::on();
        let read = written_by(run());
        let counts = on.counts(&read, at, ["mutex lock", "mutex unlock", NAME, "mutex wait"]);
        assert_eq!(counts, [100, 100, 2, 0]);
        assert_eq!(read.texts(on.sites(NAME)), ["pool"; 2]);
        assert_eq!(read.entries.len(), 202);
        // The first acquisition tells the name, also in a second trace.
        let named = on.sites(NAME).contains(&read.entries[1].event.site);
        assert!(named && on.sites("mutex lock").contains(&read.entries[0].event.site));
        let is_unlock = |at: usize| on.sites("mutex unlock").contains(&read.entries[at].event.site);
        assert!(is_unlock(2) && is_unlock(4) && !is_unlock(3));
        drop(on);
        run();
    }
}

#[test]
fn a_lock_that_is_not_free_is_waited_for_in_a_scope() {
    let _alone = alone();
    hook::install();
    let on = Locks::on();
    let long = "a name of more than sixty-three bytes, which is cut before ääää";
    assert_eq!(long.find('ä'), Some(59));
    let lock = Arc::new(Mutex::named(long, ()));
    let at = address(&*lock);
    let held = lock.lock().unwrap();
    let (sender, receiver) = mpsc::channel();
    let waiter = {
        let lock = Arc::clone(&lock);
        std::thread::spawn(move || {
            assert!(lock.try_lock().is_err());
            sender.send(tid()).unwrap();
            drop(lock.lock());
        })
    };
    let waits = on.sites("mutex wait");
    let waiter_id = receiver.recv().unwrap();
    while events_of(waiter_id, waits).is_empty() {
        std::thread::yield_now();
    }
    drop(held);
    waiter.join().unwrap();
    let read = written_by(waiter_id);
    let names = ["mutex wait", "mutex refused", "mutex lock", "mutex unlock", NAME];
    assert_eq!(on.counts(&read, at, names), [1, 1, 0, 1, 1]);
    assert_eq!(read.texts(on.sites(NAME)), [format!("{}…", &long[..59])]);
    let released = events_of(tid(), on.sites("mutex unlock")).last().unwrap().time;
    let [begin, end] = events_of(waiter_id, waits)[..] else { panic!("one wait") };
    assert!(!begin.exit && end.exit && begin.time < released && released < end.time);
}

/// The scope of the wait is between the mutex's acquisition and its release, and says nothing else of it.
#[test]
fn a_wait_for_a_condition_is_a_scope_of_the_mutex() {
    let _alone = alone();
    hook::install();
    let on = Locks::on();
    let (id, at) = on_thread(|| {
        let (lock, condition) = (Box::new(Mutex::named("jobs", 5)), Condvar::new());
        let most = Duration::from_millis(1);
        let (held, result) = condition.wait_timeout(lock.lock().unwrap(), most).unwrap();
        assert!(result.timed_out() && *held == 5);
        drop(held);
        address(&*lock)
    });
    let read = written_by(id);
    let names = ["mutex lock", "condition wait", "mutex unlock", "mutex wait"];
    assert_eq!(on.counts(&read, at, names)[..], [1, 1, 1, 0]);
    let waits = events_of(id, on.sites("condition wait"));
    let [taken, released] =
        ["mutex lock", "mutex unlock"].map(|name| events_of(id, on.sites(name))[0].time);
    let [begin, end] = waits[..] else { panic!("one wait") };
    assert!(!begin.exit && end.exit && taken < begin.time && end.time < released);
}

#[test]
fn readers_and_writers_are_told_apart() {
    let _alone = alone();
    hook::install();
    let on = Locks::on();
    let (id, at) = on_thread(|| {
        let lock = Box::new(RwLock::new(0));
        let [one, two] = [lock.read().unwrap(), lock.try_read().unwrap()];
        assert!(lock.try_write().is_err());
        drop((one, two));
        *lock.write().unwrap() += 1;
        let held = lock.try_write().unwrap();
        assert!(lock.try_read().is_err());
        drop(held);
        address(&*lock)
    });
    let names = ["rwlock read lock", "rwlock write lock", "rwlock unlock", "rwlock refused", NAME];
    assert_eq!(on.counts(&written_by(id), at, names), [2, 2, 4, 2, 0]);
}

#[test]
fn readers_and_writers_wait() {
    let _alone = alone();
    hook::install();
    let on = Locks::on();
    let lock = Arc::new(RwLock::named("table", 0));
    let at = address(&*lock);
    for (name, waits) in [("read", "rwlock read wait"), ("write", "rwlock write wait")] {
        let held = lock.write().unwrap();
        let (sender, receiver) = mpsc::channel();
        let waiter = {
            let lock = Arc::clone(&lock);
            std::thread::spawn(move || {
                sender.send(tid()).unwrap();
                match name {
                    "read" => drop(lock.read()),
                    _ => drop(lock.write()),
                }
            })
        };
        let id = receiver.recv().unwrap();
        while events_of(id, on.sites(waits)).is_empty() {
            std::thread::yield_now();
        }
        drop(held);
        waiter.join().unwrap();
        assert_eq!(on.counts(&written_by(id), at, [waits, "rwlock unlock", NAME]), [1, 1, 1]);
    }
}

/// The child may read, write and exit, and is killed at any other system call.
#[test]
fn locks_that_are_off_make_no_system_call_and_get_no_buffer() {
    let _alone = alone();
    hook::install();
    let (lock, table) = (Mutex::named("off", 0), RwLock::named("off", 0));
    let before = list().len();
    // SAFETY: the child calls nothing that needs another thread or memory.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: gives up system calls, and ends this thread, the only one.
        unsafe {
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT);
            for _ in 0..1000 {
                if let (Ok(mut lock), Ok(mut table)) = (lock.lock(), table.write()) {
                    (*lock, *table) = (*lock + 1, *table + 1);
                }
                drop((table.read(), table.try_read(), lock.try_lock()));
            }
            libc::syscall(libc::SYS_exit, 7);
        }
    }
    let mut status = 0;
    // SAFETY: a child of this process, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7, "status {status:#x}");
    let (id, ()) = on_thread(move || drop(lock.lock()));
    assert_eq!((list().len(), written_by(id).entries.len()), (before, 0));
}
