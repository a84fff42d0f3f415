//! The values by which calls of a function are counted apart. Each has a number, as long as there is room.

use super::{counts_at, paths};
use crate::{
    maps::{COUNTED_VALUES, VALUE_NUMBERS, VALUES, VALUES_USED},
    operand::Operands,
    output::{Task, now},
    python,
    registers::Registers,
    settings,
};
use aya_ebpf::helpers::generated::{bpf_probe_read_user, bpf_probe_read_user_str};
use core::{ffi::c_void, mem::MaybeUninit};
use ctrace_common::{
    Cookie, CountedValue, MAX_TEXT, MOST_COUNTED_VALUES, OTHER_VALUES, PythonValues, UNREAD_VALUE,
    ValueSources,
};

const BPF_NOEXIST: u64 = 1;

const WORDS: usize = size_of::<CountedValue>() / 8;

/// One more than the place of the first value.
const FIRST: u8 = 1;

/// Bytes read of a text: those that count, and the 0 behind them.
const TEXT_READ: u32 = MAX_TEXT as u32 + 1;

/// Returns the number of the value with which a function is called.
#[inline(always)]
pub fn number(task: Task, cookie: Cookie, registers: &Registers<'_>) -> u32 {
    let Some(site) = VALUES.get(cookie.index() as u32) else { return UNREAD_VALUE };
    let mut value = MaybeUninit::<CountedValue>::uninit();
    // Words are set one by one: the compiler would call a loop over bytes, which takes the verifier long.
    let words = value.as_mut_ptr().cast::<u64>();
    for place in 0..WORDS {
        // SAFETY: one of the words of the value.
        unsafe { words.add(place).write_volatile(0) };
    }
    // SAFETY: all words are set.
    let value = unsafe { value.assume_init_mut() };
    value.forms = site.forms;
    let is_read = match settings::PYTHON.load() != 0 && site.python != PythonValues::NONE {
        true => read_python(site, task, value),
        false => read(site, registers, value),
    };
    if !is_read {
        return UNREAD_VALUE;
    }
    let value: &CountedValue = value;
    match VALUE_NUMBERS.get_ptr(value) {
        // SAFETY: an element of a map is written before others find it.
        Some(number) => unsafe { *number },
        None => add(value),
    }
}

/// Reads the first value of a site. Returns false if it cannot be read.
#[inline(always)]
fn read(site: &ValueSources, registers: &Registers<'_>, value: &mut CountedValue) -> bool {
    let operands = Operands::of(registers);
    let (word, mut unread) = operands.value::<true>(&site.sources[0]);
    value.word = word;
    if site.fields[0] != 0 {
        let (to, from) = ((&raw mut value.text).cast::<c_void>(), word as *const c_void);
        match site.lengths[0] {
            // SAFETY: there is room for what is read. The helper checks the address itself.
            0 => unsafe {
                let read = bpf_probe_read_user_str(to, TEXT_READ, from);
                unread |= (read <= 0) as u64;
                // The 0 behind it counts, too.
                value.word = (read as u64).wrapping_sub(1);
            },
            behind => {
                let source = site.sources.get(behind as usize - 1);
                let (length, none) = source.map_or((0, 1), |source| operands.value::<true>(source));
                let length = length.min(MAX_TEXT as u64);
                // SAFETY: as above.
                let read = unsafe { bpf_probe_read_user(to, length as u32, from) };
                unread |= none | (read < 0) as u64;
                value.word = length;
            }
        }
    }
    unread == 0
}

/// Does the same for a value that tells of the Python function around the call.
#[inline(always)]
fn read_python(site: &ValueSources, task: Task, value: &mut CountedValue) -> bool {
    let Some(function) = python::running(task) else { return false };
    let offsets = &function.places.offsets;
    let word = if site.python.name == FIRST {
        function.text::<false>(offsets.qualified_name, value)
    } else if site.python.file == FIRST {
        function.text::<true>(offsets.file, value)
    } else {
        Some(function.first_line())
    };
    value.word = word.unwrap_or(0);
    word.is_some()
}

/// Gives a value a number. Calls that do not count yet, or no longer, take none. The other half of the paths
/// is for the calls inside those with a value.
#[cold]
#[inline(never)]
fn add(value: &CountedValue) -> u32 {
    if !counts_at(now()) || paths::are_half_full() {
        return OTHER_VALUES;
    }
    let Some(used) = VALUES_USED.take_below(MOST_COUNTED_VALUES as u64) else {
        return OTHER_VALUES;
    };
    let number = used as u32 + 1;
    if let Some(place) = COUNTED_VALUES.get_ptr_mut(number) {
        // SAFETY: an element of a map. Nobody else writes it, and nobody reads it yet.
        unsafe { *place = *value };
    }
    if VALUE_NUMBERS.insert(value, number, BPF_NOEXIST).is_ok() {
        return number;
    }
    // Another thread was quicker. The number stays without calls.
    match VALUE_NUMBERS.get_ptr(value) {
        // SAFETY: as above.
        Some(number) => unsafe { *number },
        None => OTHER_VALUES,
    }
}
