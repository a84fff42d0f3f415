//! Panics through frames with destructors, caught and counted, with pauses if there are several
//! rounds. Built with rustc alone. Usage: panic [ROUNDS=1] [EACH=300]

use std::hint::black_box;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static THROWER: AtomicU64 = AtomicU64::new(0);
static PASSER: AtomicU64 = AtomicU64::new(0);
static CATCHER: AtomicU64 = AtomicU64::new(0);
static PLAIN: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Relaxed);
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn thrower(x: u64) -> u64 {
    THROWER.fetch_add(1, Relaxed);
    match x % 3 {
        0 => resume_unwind(Box::new(x)),
        1 => panic!("number {x}"),
        _ => x,
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn passer(depth: u32, x: u64) -> u64 {
    PASSER.fetch_add(1, Relaxed);
    let _guard = black_box(Guard);
    if depth == 0 { thrower(x) } else { passer(depth - 1, x) + 1 }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn catcher(x: u64) -> u64 {
    CATCHER.fetch_add(1, Relaxed);
    match catch_unwind(|| passer(5, black_box(x))) {
        Ok(value) => value,
        Err(payload) => match payload.downcast_ref::<u64>() {
            Some(value) => value * 2,
            None => payload.downcast_ref::<String>().map_or(0, |text| text.len() as u64),
        },
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn plain(x: u64) -> u64 {
    PLAIN.fetch_add(1, Relaxed);
    x.wrapping_mul(7)
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    let mut numbers = std::env::args().skip(1).map(|it| it.parse().expect("a number"));
    let (rounds, each) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(300));
    let mut sum = 0;
    for round in 0..rounds {
        sum += (0..each).map(|x| plain(catcher(x))).sum::<u64>();
        if round > 0 {
            std::thread::sleep(std::time::Duration::from_millis(8));
        }
    }
    println!("sum {sum}\ndropped {}", DROPPED.load(Relaxed));
    for (name, counter) in
        [("thrower", &THROWER), ("passer", &PASSER), ("catcher", &CATCHER), ("plain", &PLAIN)]
    {
        println!("calls {name} {}", counter.load(Relaxed));
    }
}
