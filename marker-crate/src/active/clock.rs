//! The clock of events: the TSC if it runs evenly in all CPU states, else CLOCK_MONOTONIC.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The value of `clock` in a buffer.
pub(super) const TSC: u8 = 1;
pub(super) const MONOTONIC: u8 = 2;

/// The low bits of word 0 that hold the time.
pub(super) const MASK: u64 = (1 << 48) - 1;

/// The clock of this process; 0 means unknown. (CPUID traps under a hypervisor.)
static CLOCK: AtomicU8 = AtomicU8::new(0);

/// Returns the clock of this process. Async-signal-safe.
pub(super) fn clock() -> u8 {
    let known = CLOCK.load(Relaxed);
    if known != 0 {
        return known;
    }
    let clock = if is_tsc_invariant() { TSC } else { MONOTONIC };
    CLOCK.store(clock, Relaxed);
    clock
}

#[cfg(test)]
pub(super) fn assume(clock: u8) {
    CLOCK.store(clock, Relaxed);
}

/// Returns the current time, cut to an event's bits.
pub(super) fn now() -> u64 {
    let time = if clock() == TSC { tsc() } else { super::sys::monotonic() };
    time & MASK
}

#[inline]
pub(super) fn tsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads the counter; all x86-64 CPUs have it.
    unsafe {
        core::arch::asm!("rdtsc", out("rax") low, out("rdx") high, options(nomem, nostack, preserves_flags));
    }
    high << 32 | low
}

fn is_tsc_invariant() -> bool {
    const POWER: u32 = 0x8000_0007;
    cpuid(0x8000_0000).0 >= POWER && cpuid(POWER).1 & (1 << 8) != 0
}

/// Returns eax and edx of a leaf. (`core::arch`'s own is `unsafe` in some compilers we support.)
fn cpuid(leaf: u32) -> (u32, u32) {
    let (eax, edx);
    // SAFETY: all x86-64 CPUs have cpuid; rbx, which the compiler keeps to itself, is put back.
    unsafe {
        core::arch::asm!(
            "mov {keep}, rbx",
            "cpuid",
            "mov rbx, {keep}",
            keep = out(reg) _,
            inout("eax") leaf => eax,
            inout("ecx") 0 => _,
            out("edx") edx,
            options(nomem, nostack, preserves_flags),
        );
    }
    (eax, edx)
}
