//! Decides whether a call meets the condition of its function, before it makes an event.
//!
//! A call that does not meet it has no entry event, but at a way out it has an end. That end must not
//! pass for the end of an earlier call that met it, which an exception has ended, say. So where such
//! a call may be open at the same place, the reader is told that everything there is over.

use crate::{
    atomic::add,
    maps::{CONDITIONS, MET, UNMET, VALUES},
    operand::Operands,
    output::{Task, event},
    registers::Registers,
};
use aya_ebpf::helpers::generated::bpf_probe_read_user_str;
use core::ffi::c_void;
use ctrace_common::{
    COMPARED_TEXT, Comparison, Condition, Cookie, FLOAT, Kind, MAX_COMPARISONS, MET_SLOTS,
    STACK_SIZE, TEXT, UNMET_COUNTERS, float_order,
};

/// Returns whether a call counts, and counts it here if not. A function without a condition has 0 in
/// its element of `VALUES`.
#[inline(always)]
pub fn is_met(task: Task, cookie: Cookie, registers: &Registers<'_>) -> bool {
    let Some(sources) = VALUES.get(cookie.index() as u32) else { return true };
    let Some(number) = sources.condition.checked_sub(1) else { return true };
    let Some(condition) = CONDITIONS.get(number) else { return true };
    let (holds, unread) = holds(condition, registers);
    let open = Open::of(task);
    if holds != 0 {
        open.note(registers.sp());
        return true;
    }
    if open.may_be_at(registers.sp()) {
        open.note(registers.sp() + 1);
        event(task, Kind::Unmet as u8, registers.sp(), cookie.probe(), None);
    }
    count(number * UNMET_COUNTERS);
    if unread != 0 {
        count(number * UNMET_COUNTERS + 1);
    }
    false
}

/// The calls of a thread that met a condition. On the stack of the last one, all that may be open
/// are at this stack pointer, or above. It is a word of `MET` with 16 bits of the thread's id. If
/// another thread has taken the word, nothing is known.
struct Open {
    word: Option<*mut u64>,
    thread: u64,
}

impl Open {
    #[inline(always)]
    fn of(task: Task) -> Self {
        let word = MET.get_ptr_mut(task.tid % MET_SLOTS);
        Self { word, thread: (task.tid / MET_SLOTS) as u64 & 0xffff }
    }

    #[inline(always)]
    fn note(&self, sp: u64) {
        if let Some(word) = self.word {
            // SAFETY: an element of the map, written in one piece.
            unsafe { word.write_volatile(sp << 16 | self.thread) };
        }
    }

    /// Returns whether one of them may be open at this stack pointer, or below it.
    #[inline(always)]
    fn may_be_at(&self, sp: u64) -> bool {
        // SAFETY: an element of the map, read in one piece.
        let word = self.word.map_or(0, |word| unsafe { word.read_volatile() });
        let open = word >> 16;
        word != 0 && (word & 0xffff != self.thread || sp >= open || open - sp > STACK_SIZE)
    }
}

#[inline(always)]
fn count(counter: u32) {
    if let Some(calls) = UNMET.get_ptr_mut(counter) {
        // SAFETY: an element of a map, aligned to 8. Atomic, because a program can be preempted by
        // another one on the same CPU.
        unsafe { add(calls, 1) };
    }
}

/// Returns 1 and 0 if it holds. The second one is 1 if a value could not be read.
#[inline(always)]
fn holds(condition: &Condition, registers: &Registers<'_>) -> (u64, u64) {
    let operands = Operands::of(registers);
    let count = (condition.count as usize).min(MAX_COMPARISONS);
    let (mut any, mut all, mut some_unread) = (0, 0, 0);
    for (_, comparison) in (0..count).zip(&condition.comparisons) {
        let (value, unread) = operands.value::<true>(&comparison.operand);
        let (outcome, unread) = match comparison.kind {
            TEXT => compare_text(comparison, value, unread),
            FLOAT => (compare_float(comparison, value), unread),
            _ => (compare(value ^ comparison.flip, comparison.number), unread),
        };
        let holds = (comparison.relation as u64) >> outcome & 1 & !unread;
        let begins = comparison.begins as u64;
        any |= all & begins;
        all = (all | begins) & holds;
        some_unread |= unread;
    }
    (any | all, some_unread)
}

/// Returns the number of the bit in a relation: 0 for less, 1 for equal, 2 for greater.
#[inline(always)]
fn compare(value: u64, with: u64) -> u64 {
    1 + (value > with) as u64 - (value < with) as u64
}

/// Returns the same, or 3 for what is no number: it is in no relation.
#[inline(always)]
fn compare_float(comparison: &Comparison, bits: u64) -> u64 {
    // The size is forced into 1 to 8, so that the verifier sees that shifts have room for it.
    let size = (comparison.operand.size.wrapping_sub(1) as u32 & 7) + 1;
    let (value, magnitude) = float_order(bits, size);
    if magnitude > comparison.flip { 3 } else { compare(value, comparison.number) }
}

/// Compares the text at an address. Also returns 1 if it cannot be read.
#[inline(always)]
fn compare_text(comparison: &Comparison, address: u64, unread: u64) -> (u64, u64) {
    let mut text = [0u64; COMPARED_TEXT / 8];
    // SAFETY: there is room for what is read. The helper checks the address itself, and leaves what
    // is behind the text.
    let read = unsafe {
        bpf_probe_read_user_str(
            text.as_mut_ptr().cast::<c_void>(),
            COMPARED_TEXT as u32,
            address as *const c_void,
        )
    };
    let mut differing = 0;
    for (word, with) in text.iter().zip(&comparison.text) {
        differing |= word ^ with;
    }
    let is_unread = unread | (read <= 0) as u64;
    (1 + (differing != 0) as u64, is_unread)
}
