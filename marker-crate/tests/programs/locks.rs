//! Checks that locks behave as those of the standard library. Prints "fine" at the end.

use ctrace_marker::{Condvar, Mutex, MutexGuard, RwLock};
use std::sync::{Arc, TryLockError};

static POOL: Mutex<Vec<u32>> = Mutex::named("pool", Vec::new());
static TABLE: RwLock<[u32; 3]> = RwLock::new([0; 3]);

fn is_shared<T: Send + Sync>() {}

fn first<'a>(numbers: &'a mut MutexGuard<'_, Vec<u32>>) -> &'a mut u32 {
    &mut numbers[0]
}

/// One thread hands numbers to another, which takes them as they come.
fn waits() {
    let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let taker = {
        let shared = Arc::clone(&shared);
        std::thread::spawn(move || {
            let (numbers, more) = (&shared.0, &shared.1);
            let mut sum = 0;
            while sum < 10 {
                let mut held = more.wait_while(numbers.lock().unwrap(), |it| it.is_empty()).unwrap();
                sum += held.drain(..).sum::<u32>();
            }
            sum
        })
    };
    for number in 1..=4 {
        shared.0.lock().unwrap().push(number);
        shared.1.notify_all();
    }
    assert_eq!(taker.join().unwrap(), 10);
    let most = std::time::Duration::from_millis(5);
    let held = shared.0.lock().unwrap();
    let (held, result) = shared.1.wait_timeout_while(held, most, |it| it.is_empty()).unwrap();
    assert!(result.timed_out() && held.is_empty());
    let (held, result) = shared.1.wait_timeout_while(held, most, |it| !it.is_empty()).unwrap();
    assert!(!result.timed_out() && held.is_empty());
}

fn main() {
    is_shared::<Mutex<u32>>();
    is_shared::<Condvar>();
    is_shared::<RwLock<u32>>();
    let mut held = POOL.lock().unwrap();
    held.extend([1, 2]);
    *first(&mut held) += 6;
    assert!(matches!(POOL.try_lock(), Err(TryLockError::WouldBlock)));
    assert_eq!(format!("{held:?}"), "[7, 2]");
    drop(held);
    assert_eq!((POOL.name(), POOL.try_lock().unwrap().len()), ("pool", 2));

    let [one, two] = [TABLE.read().unwrap(), TABLE.try_read().unwrap()];
    assert!(TABLE.try_write().is_err());
    drop((one, two));
    TABLE.write().unwrap()[1] = 5;
    assert!(TABLE.try_write().is_ok_and(|table| table[1] == 5));

    // Guards need not be dropped in any order, and a lock may hold something without a size.
    let (a, b) = (Mutex::new(1), Mutex::from(2));
    let (held, other) = (a.lock().unwrap(), b.lock().unwrap());
    drop(held);
    assert_eq!(*other + *a.lock().unwrap(), 3);
    drop(other);
    let unsized_: Arc<Mutex<[u8]>> = Arc::new(Mutex::new([1, 2, 3]));
    assert_eq!(unsized_.lock().unwrap().len(), 3);
    assert_eq!((a.into_inner().unwrap(), Mutex::<u8>::default().get_mut().unwrap()), (1, &mut 0));

    waits();

    // Poisoned by a panic while it is held, also for threads that wait.
    let poisoned = Arc::new(Mutex::named("poisoned", 7));
    let (sender, receiver) = std::sync::mpsc::channel();
    std::panic::set_hook(Box::new(|_| {}));
    let panics = {
        let poisoned = Arc::clone(&poisoned);
        std::thread::spawn(move || {
            let _held = poisoned.lock().unwrap();
            sender.send(()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
            panic!("while it is held");
        })
    };
    receiver.recv().unwrap();
    assert_eq!(poisoned.lock().map(|held| *held).map_err(|held| *held.into_inner()), Err(7));
    assert!(panics.join().is_err());
    assert!(poisoned.is_poisoned());
    assert!(matches!(poisoned.try_lock(), Err(TryLockError::Poisoned(held)) if **held.get_ref() == 7));
    poisoned.clear_poison();
    assert_eq!(*poisoned.lock().unwrap(), 7);
    println!("fine");
}
