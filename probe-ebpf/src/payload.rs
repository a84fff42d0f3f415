//! The values of an event: read from the sources in the site's element of `VALUES`, and delivered
//! in a record after the event.

use crate::{
    loss, maps::VALUES, operand::Operands, output::Task, registers::Registers, ring::reserve,
};
use ctrace_common::{Cookie, Kind, LOST_PAYLOADS, MAX_VALUES, Record, UNREAD, payload_slots};

/// Delivers the values of a site for its event of this time.
#[inline(always)]
pub fn deliver(task: Task, ts_ns: u64, cookie: Cookie, registers: &Registers<'_>) {
    let Some(site) = VALUES.get(cookie.index() as u32) else { return };
    let count = (site.count as usize).min(MAX_VALUES);
    let operands = Operands::of(registers);
    let mut values = [0; MAX_VALUES];
    // Words are set one by one: the compiler would call a loop over bytes, which takes the verifier
    // long.
    for value in &mut values {
        // SAFETY: the pointer comes from a reference.
        unsafe { (&raw mut *value).write_volatile(0) };
    }
    // Its low bits are always 0, but the verifier does not know that. If it knew them, older kernels
    // would follow every value that the loop can give it.
    let mut forms = site.forms;
    for (place, source) in (0..count).zip(&site.sources) {
        let (value, is_unread) = operands.value(source);
        values[place] = value;
        forms |= is_unread << (place as u32 + UNREAD);
    }
    let slots = payload_slots(count, 0);
    let Some(room) = reserve(slots) else { return loss::add_to(LOST_PAYLOADS, 1) };
    let record = Record {
        ts_ns,
        sp: forms,
        pid: task.pid,
        tid: task.tid,
        probe: cookie.probe(),
        kind: Kind::Payload as u8,
        reserved: 0,
        lost_before: slots as u16,
    };
    room.commit_values(record, values.as_chunks().0, slots - 1);
}
