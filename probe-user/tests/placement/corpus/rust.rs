//! Panics through frames, matches, tail calls, threads.
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

struct Guard(&'static str);
impl Drop for Guard {
    #[inline(never)]
    fn drop(&mut self) {
        print!("~{} ", self.0);
    }
}

#[inline(never)]
fn h_panics(n: u32) -> u32 {
    let _guard = Guard("panics");
    assert!(n != 3, "three");
    n + 1
}
#[inline(never)]
fn h_passes(n: u32) -> u32 {
    let _guard = Guard("passes");
    h_panics(n) * 2
}
#[inline(never)]
fn h_match(n: u32, text: &str) -> usize {
    match n {
        0 => text.len(),
        1 => text.chars().rev().count(),
        2 => text.matches('a').count(),
        3 => h_match(0, text) + 1,
        4 => text.bytes().map(usize::from).sum(),
        5 => 55,
        6 => text.find('c').unwrap_or(7),
        _ => usize::MAX,
    }
}
#[inline(never)]
fn h_conditional(n: u64) -> u64 {
    if n > 10 { h_collatz(n) } else { n }
}
#[inline(never)]
fn h_collatz(mut n: u64) -> u64 {
    let mut steps = 0;
    while n != 1 {
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}
trait Shape {
    fn area(&self) -> u32;
}
struct Square(u32);
struct Unit;
impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u32 {
        self.0 * self.0
    }
}
impl Shape for Unit {
    #[inline(never)]
    fn area(&self) -> u32 {
        1
    }
}
#[inline(never)]
fn h_dynamic(shape: &dyn Shape) -> u32 {
    shape.area()
}

fn main() {
    std::panic::set_hook(Box::new(|_| print!("panic! ")));
    for n in 0..5 {
        let outcome = catch_unwind(AssertUnwindSafe(|| h_passes(n)));
        println!("{:?}", outcome.ok());
    }
    for n in 0..8 {
        print!("{} ", h_match(n, "abracadabra"));
    }
    println!("{:?}", (9..14).map(h_conditional).collect::<Vec<_>>());
    let shapes: [&dyn Shape; 2] = [&Square(7), &Unit];
    println!("{}", shapes.iter().map(|shape| h_dynamic(*shape)).sum::<u32>());
    let mut words = BTreeMap::new();
    for n in 0..100u64 {
        *words.entry(format!("w{}", n % 7)).or_insert(0) += h_collatz(n + 1);
    }
    println!("{words:?}");
    let threads: Vec<_> = (0..4)
        .map(|n| std::thread::spawn(move || (0..50).map(|m| h_match(m % 7, "thread") + n).sum::<usize>()))
        .collect();
    println!("{:?}", threads.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>());
    std::process::exit(5);
}
