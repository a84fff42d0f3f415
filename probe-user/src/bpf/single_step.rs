//! Measures what it costs when the kernel steps over a probed instruction. A hypervisor makes that ten
//! times as dear, and nothing else tells it.

use super::features::OwnPlace;
use ctrace_core::units::Nanos;
use std::{arch::naked_asm, hint::black_box, sync::OnceLock, thread::Builder, time::Instant};

/// Calls in a round.
const CALLS: u32 = 8;
/// The least of so many rounds counts: other work only adds.
const ROUNDS: u32 = 16;

/// Returns the cost, if this kernel and these rights let it be measured. That takes some milliseconds,
/// once.
pub(crate) fn single_step_cost() -> Option<Nanos> {
    static COST: OnceLock<Option<Nanos>> = OnceLock::new();
    *COST.get_or_init(measure)
}

fn measure() -> Option<Nanos> {
    let bare = least();
    let place = OwnPlace::at(stepped as *const () as u64).ok()?;
    let link = place.probe().ok()?;
    let traced = least();
    // To close it takes the kernel a while. Where there is no thread for that, it happens here.
    drop(Builder::new().name("close".into()).spawn(move || drop(link)));
    traced.checked_sub(bare).filter(|cost| *cost > 0).map(Nanos)
}

/// Returns the least time of a call, in nanoseconds.
fn least() -> u64 {
    let round = |_| {
        let begun = Instant::now();
        (0..CALLS).for_each(|_| _ = black_box(stepped()));
        begun.elapsed().as_nanos() as u64 / u64::from(CALLS)
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}

/// The kernel does not emulate its first instruction.
// SAFETY: it keeps to the calling convention: it sets the result and returns.
#[unsafe(naked)]
extern "C" fn stepped() -> u32 {
    naked_asm!("xor eax, eax", "ret")
}
