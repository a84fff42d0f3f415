//! A program, or with `--cfg library` a library, that checks its own markers. Every build uses the
//! same source. Prints "fine" at the end, and its number of entries.

use ctrace_marker::{frame, message, plot, scope};
use std::hint::black_box;

#[inline(never)]
fn plain(n: u64) -> u64 {
    let _scope = scope!("plain \"{}\" \\", group = "prod");
    black_box(n) + 1
}

#[inline]
fn generic<T: Copy>(value: T) -> T {
    let _scope = scope!("generic");
    black_box(value)
}

#[inline(never)]
fn unnamed(n: u64) -> u64 {
    let _scope = scope!();
    black_box(n)
}

#[inline(never)]
fn grouped(n: u64) -> u64 {
    let _scope = scope!("compiled out", group = "dev");
    black_box(n)
}

/// Takes 9 slots, or whole calls.
#[inline(never)]
fn points(n: u64) {
    let _scope = scope!("valued", n = n, group = "prod");
    message!("twelve bytes");
    message!(level = Info, "{:>10}", n);
    plot!("plotted", n as f64, unit = "ms");
    frame!();
    plot!("compiled out", n, group = "dev");
    message!(group = "dev", "compiled out {n}");
}

/// Public but never called: only the linker can know.
pub fn never_called(n: u64) -> u64 {
    let _scope = scope!("never called");
    black_box(n)
}

fn calls() -> u64 {
    let mut sum = 0;
    for n in 0..100 {
        sum += plain(n) + u64::from(generic(n as u8)) + generic(n) + unnamed(n) + grouped(n);
        ctrace_marker::usdt!(check, place, n, sum);
        #[cfg(other)]
        other::other(n);
    }
    sum
}

unsafe extern "C" {
    #[link_name = "__start_ctrace_sites"]
    static SITES: [u8; 0];
    #[link_name = "__stop_ctrace_sites"]
    static SITES_END: [u8; 0];
    #[link_name = "__start_ctrace_runtime"]
    static RUNTIME: [u8; 0];
    #[link_name = "__stop_ctrace_runtime"]
    static RUNTIME_END: [u8; 0];
}

unsafe fn relative(field: usize) -> usize {
    unsafe { field.wrapping_add_signed(*(field as *const i32) as isize) }
}

unsafe fn switch(by: i16) -> usize {
    let mut entry = &raw const SITES as usize;
    let mut entries = 0;
    while entry < &raw const SITES_END as usize {
        unsafe {
            let semaphore = relative(entry + 20) as *mut i16;
            semaphore.write_volatile(semaphore.read_volatile() + by);
        }
        entry += 32;
        entries += 1;
    }
    entries
}

/// Counts the events ever written, in all buffers of all runtimes.
unsafe fn events() -> u64 {
    let mut runtime = &raw const RUNTIME as usize;
    let mut events = 0;
    while runtime < &raw const RUNTIME_END as usize {
        let mut buffer = unsafe { *(relative(runtime + 12) as *const usize) };
        while buffer != 0 {
            unsafe {
                assert_eq!(*(buffer as *const [u8; 8]), *b"ctraceb\x01");
                let position = (*((buffer + 20) as *const u32)).min(4096);
                let whole = *((buffer + 42) as *const u16);
                events += *((buffer + 32) as *const u64);
                events += u64::from(position - 64) / 16 + u64::from(whole);
                buffer = *((buffer + 8) as *const usize);
            }
        }
        runtime += 32;
    }
    events
}

#[unsafe(no_mangle)]
pub extern "C" fn check() -> usize {
    let want = if cfg!(other) { 2 * 5 * 100 } else { 2 * 4 * 100 };
    unsafe {
        // A reopened library may still be loaded from the first time.
        let before = events();
        calls();
        assert_eq!(events() - before, 0, "off at first");
        let entries = switch(1);
        calls();
        assert_eq!(events() - before, want, "in the first thread");
        std::thread::spawn(calls).join().unwrap();
        std::thread::spawn(calls).join().unwrap();
        assert_eq!(events() - before, 3 * want, "in other threads");
        let before = events();
        (0..100).for_each(points);
        // The rest of a buffer is filled.
        let of_points = events() - before;
        assert!((900..1000).contains(&of_points), "{of_points} events of points");
        switch(-1);
        let before = events();
        calls();
        points(1);
        assert_eq!(events(), before, "off at last");
        entries
    }
}

#[cfg(not(library))]
fn main() {
    println!("fine, {} entries", check());
    // An event for the exit of the process.
    unsafe { switch(1) };
    calls();
}
