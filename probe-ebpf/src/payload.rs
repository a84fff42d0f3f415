//! The values of an event: read from the sources in the site's element of `VALUES`, and delivered
//! in a record after the event.

use crate::{
    loss,
    maps::VALUES,
    operand::{Operands, of_result},
    output::Task,
    python::{self, InRing},
    registers::Registers,
    ring::{Room, reserve},
    settings,
};
use aya_ebpf::helpers::generated::{bpf_probe_read_user, bpf_probe_read_user_str};
use core::{ffi::c_void, mem::MaybeUninit};
use ctrace_common::{
    Cookie, Kind, LOST_PAYLOADS, MAX_TEXT, MAX_VALUES, Operand, PythonValues, Record, SLOT_VALUES,
    UNREAD, ValueSources,
};

/// The mark of [`text`] for one that could not be read.
const UNREADABLE: u64 = 1 << 63;
/// Bytes read of a text: those that are shown, and the 0 behind them.
const TEXT_READ: u32 = MAX_TEXT as u32 + 1;

/// The texts that there may be among values.
pub type Texts = u8;
pub const NO_TEXTS: Texts = 0;
/// Those that end with a 0.
pub const ENDED_TEXTS: Texts = 1;
/// These, and those with a length.
pub const ALL_TEXTS: Texts = 2;

/// Delivers the values of a point or of a function's entry, for its event of this time.
#[inline(always)]
pub fn deliver<const TEXTS: Texts>(
    task: Task,
    ts_ns: u64,
    cookie: Cookie,
    registers: &Registers<'_>,
) {
    // Before the first call, else each register would be on the stack twice, and older kernels have
    // 512 bytes for all functions together.
    let operands = Operands::of(registers);
    let (element, probe) = (cookie.index() as u32, cookie.probe());
    // See `main.rs`.
    let value_of = #[inline(always)]
    |source: &Operand| {
        // Older kernels would take long to follow more ways.
        if TEXTS == ALL_TEXTS {
            operands.value::<true>(source)
        } else {
            operands.value::<false>(source)
        }
    };
    deliver_from::<MAX_VALUES, MAX_VALUES, TEXTS>(element, task, ts_ns, probe, value_of);
}

/// Delivers the result of a function, for the event of its exit. `element` of `VALUES` says what it
/// is like.
#[inline(always)]
pub fn deliver_result(element: u32, task: Task, ts_ns: u64, probe: u32, registers: &Registers<'_>) {
    let results = registers.results();
    let value_of = #[inline(always)]
    |source: &Operand| of_result(source, results);
    deliver_from::<1, SLOT_VALUES, ALL_TEXTS>(element, task, ts_ns, probe, value_of);
}

/// Delivers at most `MOST` values, for which there are `WORDS` words: the verifier follows a loop as
/// often as it can run.
#[inline(always)]
fn deliver_from<const MOST: usize, const WORDS: usize, const TEXTS: Texts>(
    element: u32,
    task: Task,
    ts_ns: u64,
    probe: u32,
    value_of: impl Fn(&Operand) -> (u64, u64),
) {
    // Texts of a told length and Python's functions are only on kernels that follow many ways. Such values
    // are written as they are read: all of them at a time would take a fifth of the stack.
    let has_all_kinds = TEXTS == ALL_TEXTS && MOST > 1;
    let Some(site) = VALUES.get(element) else { return };
    let count = (site.count as usize).min(MOST);
    if count == 0 {
        return;
    }
    let Some(room) = reserve(site.slots as usize) else { return loss::add_to(LOST_PAYLOADS, 1) };
    let mut values = [0; WORDS];
    let slots = count.div_ceil(SLOT_VALUES);
    if has_all_kinds {
        room.write_zeros(slots);
    } else {
        // Words are set one by one: the compiler would call a loop over bytes, which takes the verifier
        // long.
        for value in &mut values {
            // SAFETY: the pointer comes from a reference.
            unsafe { (&raw mut *value).write_volatile(0) };
        }
    }
    // Its low bits are always 0, but the verifier does not know that. If it knew them, older kernels
    // would follow every value that the loop can give it.
    let mut forms = site.forms;
    for (place, source) in (0..count).zip(&site.sources) {
        let (mut value, mut is_unread) = value_of(source);
        let field = site.fields[place];
        if TEXTS != NO_TEXTS && field != 0 {
            let length = match site.lengths[place] {
                behind @ 1.. if TEXTS == ALL_TEXTS => {
                    let source = site.sources.get(behind as usize - 1);
                    let (length, none) = source.map_or((0, 1), &value_of);
                    counted_text(&room, field.into(), value, length, is_unread | none)
                }
                _ => text(&room, field.into(), value, is_unread),
            };
            is_unread = length >> 63;
            value = length & !UNREADABLE;
        }
        if has_all_kinds {
            room.write_value(place as u64, value);
        } else {
            values[place] = value;
        }
        forms |= is_unread << (place as u32 + UNREAD);
    }
    if !has_all_kinds {
        room.write_values(values.as_chunks().0, slots);
    }
    if has_all_kinds && settings::PYTHON.load() != 0 {
        forms &= !write_python(site, task, &room);
    }
    let record = Record {
        ts_ns,
        sp: forms,
        pid: task.pid,
        tid: task.tid,
        probe,
        kind: Kind::Payload as u8,
        reserved: 0,
        lost_before: site.slots as u16,
    };
    room.commit(record);
}

/// Writes the values that tell of the Python function around this call, which were unread so far. Returns their
/// bits among those of unread values.
#[inline(always)]
fn write_python(site: &ValueSources, task: Task, room: &Room) -> u64 {
    let PythonValues { name, file, line, reserved: _ } = site.python;
    if name | file | line == 0 {
        return 0;
    }
    let Some(function) = python::running(task) else { return 0 };
    let mut read = 0;
    // See `main.rs`.
    let field =
        #[inline(always)]
        |value: u8| site.fields.get((value as usize).wrapping_sub(1)).map(|field| *field as u64);
    let write = #[inline(always)]
    |value: u8, word: u64| {
        let place = value as u64 - 1;
        room.write_value(place, word);
        1 << (place + UNREAD as u64)
    };
    if let Some(slot) = field(name)
        && let Some(length) = function
            .text::<false>(function.places.offsets.qualified_name, &mut InRing { room, slot })
    {
        read |= write(name, length);
    }
    if let Some(slot) = field(file)
        && let Some(length) =
            function.text::<true>(function.places.offsets.file, &mut InRing { room, slot })
    {
        read |= write(file, length);
    }
    if line != 0 {
        read |= write(line, function.first_line());
    }
    read
}

/// Copies the text at an address to its field, which begins at this slot. Returns its length, or
/// [`UNREADABLE`].
///
/// It is always inlined: older kernels would follow every combination of what a called function
/// returns.
#[inline(always)]
fn text(room: &Room, field: u64, address: u64, is_unread: u64) -> u64 {
    let mut bytes = MaybeUninit::<[u64; MAX_TEXT / 8 + 1]>::uninit();
    if is_unread != 0 {
        return UNREADABLE;
    }
    let (to, from) = (bytes.as_mut_ptr().cast::<c_void>(), address as *const c_void);
    // SAFETY: there is room for what is read. The helper checks the address itself.
    let read = unsafe { bpf_probe_read_user_str(to, TEXT_READ, from) };
    if read <= 0 {
        return UNREADABLE;
    }
    // SAFETY: to the verifier the helper has written all of it. What is behind the text counts for
    // nothing.
    let bytes = unsafe { bytes.assume_init_ref() };
    let (slots, _) = bytes.as_chunks();
    room.write_from(field, &slots[0]);
    room.write_from(field + 1, &slots[1]);
    // The 0 behind it counts, too.
    (read as u64 - 1) & (2 * MAX_TEXT as u64 - 1)
}

/// Copies this many bytes from an address to a text's field, [`MAX_TEXT`] at most. Returns the same as
/// [`text`].
#[inline(always)]
fn counted_text(room: &Room, field: u64, address: u64, length: u64, is_unread: u64) -> u64 {
    // The helper writes as many as there are, and to the verifier all must be written.
    let mut bytes = [0u64; MAX_TEXT / 8];
    if is_unread != 0 {
        return UNREADABLE;
    }
    let length = length.min(MAX_TEXT as u64);
    let (to, from) = (bytes.as_mut_ptr().cast::<c_void>(), address as *const c_void);
    // SAFETY: there is room for what is read. The helper checks the address itself.
    if unsafe { bpf_probe_read_user(to, length as u32, from) } < 0 {
        return UNREADABLE;
    }
    let (slots, _) = bytes.as_chunks();
    room.write_from(field, &slots[0]);
    room.write_from(field + 1, &slots[1]);
    length
}
