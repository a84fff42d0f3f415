//! The Python function that the current thread runs, around the C function of a probe: read from the
//! interpreter's structures.
//!
//! The thread is stopped in the probe, so its own frames do not change. Others may begin and end meanwhile:
//! the list of threads is followed for a bounded number of steps, and whatever is taken for code or a text
//! must name that as its type. So a list that changed, or a version with other offsets, gives nothing
//! rather than something wrong.

use crate::{
    kernel::Kernel,
    maps::PYTHONS,
    settings,
    turns::{repeat, unknown_zero},
};
use aya_ebpf::helpers::generated::bpf_probe_read_user;
use core::ffi::c_void;
use ctrace_common::{MAX_TEXT, NO_OFFSET, PythonPlaces};

/// Threads and interpreters that are looked at, at most.
const MOST_STEPS: u32 = 1024;
/// The entry of C code into the interpreter is a frame of its own, without a function. At most so many of these are
/// passed over.
const MOST_FRAMES: u32 = 4;

/// `FRAME_OWNED_BY_CSTACK`: the owner of such a frame. No owner has this number before 3.12.
const OWNED_BY_C: u64 = 3;

/// `PyObject.ob_type`, in builds with one lock for all threads.
const OBJECT_TYPE: u64 = 8;
/// The words of a text's head: its type, the number of its characters, and what follows.
const HEAD_WORDS: usize = 5;
const HEAD_TYPE: usize = 1;
const HEAD_LENGTH: usize = 2;
const HEAD_STATE: usize = 4;
/// Bits of `PyASCIIObject.state`: the bytes of a character, and whether these follow the head.
const KIND_SHIFT: u64 = 2;
const COMPACT: u64 = 1 << 5;
const ASCII: u64 = 1 << 6;

/// `…`, in place of the beginning of a long path.
const ELLIPSIS: [u8; 3] = [0xe2, 0x80, 0xa6];
/// The bytes of a long path that are kept. With the sign before them there is room left: a full field would
/// mean that the text goes on.
const KEPT_END: u64 = MAX_TEXT as u64 - 4;
/// The last place at which a character of 4 bytes has room in a field, or goes on behind it.
const LAST: u64 = MAX_TEXT as u64 - 1;

/// The words of a field, and room for what goes on behind it.
pub type Field = [u64; MAX_TEXT / 8 + 1];
pub const EMPTY: Field = [0; MAX_TEXT / 8 + 1];

/// The code of a Python function.
pub struct Function {
    code: u64,
    pub places: &'static PythonPlaces,
}

/// Reads a word; 0 if that fails.
#[inline(always)]
fn word(address: u64) -> u64 {
    let mut word = 0_u64;
    // SAFETY: 8 bytes, for which there is room. The helper checks the address itself, and leaves 0 if it
    // is a bad one.
    unsafe { bpf_probe_read_user((&raw mut word).cast(), 8, address as *const c_void) };
    word
}

/// Returns the innermost frame of the current thread; 0 if it has none. Python names a thread by the address
/// that its register `fs` has, in every pid namespace.
#[inline(always)]
fn frame(places: &PythonPlaces) -> u64 {
    let offsets = &places.offsets;
    let own = Kernel::current().word(&settings::TASK_FSBASE);
    let zero = unknown_zero();
    let (mut frame, mut thread) = (zero, zero);
    let mut interpreter = word(places.interpreters);
    repeat(MOST_STEPS, |_| {
        if thread == 0 {
            if interpreter == 0 {
                return false;
            }
            thread = word(interpreter.wrapping_add(offsets.first_thread as u64));
            interpreter = word(interpreter.wrapping_add(offsets.next_interpreter as u64));
            return true;
        }
        if word(thread.wrapping_add(offsets.thread_id as u64)) == own {
            let mut holder = thread;
            if offsets.c_frame != NO_OFFSET {
                holder = word(thread.wrapping_add(offsets.c_frame as u64));
            }
            frame = word(holder.wrapping_add(offsets.frame as u64));
            // A structure that is made for a thread that is about to start has no frame yet, and may have the
            // name of its maker.
            if frame != 0 {
                return false;
            }
        }
        thread = word(thread.wrapping_add(offsets.next_thread as u64));
        true
    });
    frame
}

/// Returns the innermost Python function of the current thread.
#[inline(always)]
pub fn running(pid: u32) -> Option<Function> {
    let places = PYTHONS.get_ptr(pid)?;
    // SAFETY: the map's values live as long as the map.
    let places = unsafe { &*places };
    let mut frame = frame(places);
    let mut found = unknown_zero();
    repeat(MOST_FRAMES, |_| {
        if word(frame.wrapping_add(places.offsets.owner as u64)) & 0xff == OWNED_BY_C {
            frame = word(frame.wrapping_add(places.offsets.previous as u64));
            return frame != 0;
        }
        let code = word(frame.wrapping_add(places.offsets.code as u64));
        if word(code.wrapping_add(OBJECT_TYPE)) == places.code_type {
            found = code;
        }
        false
    });
    (found != 0).then_some(Function { code: found, places })
}

/// Notes that a process has begun with the memory of its parent.
#[inline(always)]
pub fn inherit(parent: u32, child: u32) {
    if settings::PYTHON.load() == 0 {
        return;
    }
    if let Some(places) = PYTHONS.get_ptr(parent) {
        // A full map leaves the functions of the child unread, which is told.
        // SAFETY: the map's values live as long as the map.
        let _ = PYTHONS.insert(child, unsafe { &*places }, 0);
    }
}

/// Notes that a process runs another program now, or has ended.
#[inline(always)]
pub fn forget(pid: u32) {
    if settings::PYTHON.load() != 0 {
        let _ = PYTHONS.remove(pid);
    }
}

impl Function {
    /// Returns the number of the line where its definition begins.
    #[inline(always)]
    pub fn first_line(&self) -> u64 {
        let line = word(self.code.wrapping_add(self.places.offsets.first_line as u64));
        line as i32 as i64 as u64
    }

    /// Copies one of its texts, with zeros behind it, and returns the length. `KEEPS_END`: of a long one, the
    /// end counts.
    #[inline(always)]
    pub fn text<const KEEPS_END: bool>(&self, offset: u32, to: &mut Field) -> Option<u64> {
        let object = word(self.code.wrapping_add(offset as u64));
        let mut head = [0_u64; HEAD_WORDS];
        let size = size_of_val(&head) as u32;
        // SAFETY: there is room for what is read. The helper checks the address itself.
        let error = unsafe {
            bpf_probe_read_user((&raw mut head).cast(), size, object as *const c_void)
        };
        let (count, state) = (head[HEAD_LENGTH], head[HEAD_STATE]);
        if error != 0 || head[HEAD_TYPE] != self.places.text_type || state & COMPACT == 0 {
            return None;
        }
        if state & ASCII != 0 {
            let from = object.wrapping_add(self.places.offsets.ascii as u64);
            ascii::<KEEPS_END>(to, from, count)
        } else {
            let from = object.wrapping_add(self.places.offsets.wide as u64);
            wide(to, from, count, state >> KIND_SHIFT & 7)
        }
    }
}

/// Copies a text of one byte a character.
#[inline(always)]
fn ascii<const KEEPS_END: bool>(bytes: &mut Field, from: u64, count: u64) -> Option<u64> {
    let to = bytes.as_mut_ptr().cast::<u8>();
    if KEEPS_END && count > MAX_TEXT as u64 {
        let from = from.wrapping_add(count - KEPT_END) as *const c_void;
        // SAFETY: the sign and the end have room. The helper checks the address itself.
        unsafe {
            to.write(ELLIPSIS[0]);
            to.add(1).write(ELLIPSIS[1]);
            to.add(2).write(ELLIPSIS[2]);
            let read = bpf_probe_read_user(to.add(ELLIPSIS.len()).cast(), KEPT_END as u32, from);
            return (read == 0).then_some(ELLIPSIS.len() as u64 + KEPT_END);
        }
    }
    let length = count.min(MAX_TEXT as u64);
    // SAFETY: as above.
    let read = unsafe { bpf_probe_read_user(to.cast(), length as u32, from as *const c_void) };
    (read == 0).then_some(length)
}

/// Copies a text of `kind` bytes a character, as UTF-8. The verifier follows one path for characters of any length.
#[inline(always)]
fn wide(bytes: &mut Field, from: u64, count: u64, kind: u64) -> Option<u64> {
    let to = bytes.as_mut_ptr().cast::<u8>();
    let size = (kind.wrapping_sub(1) & 3) + 1;
    let zero = unknown_zero();
    let (mut length, mut error) = (zero, zero);
    repeat(MAX_TEXT as u32, |number| {
        if number as u64 >= count || length > LAST {
            return false;
        }
        let mut character = 0_u32;
        let from = from.wrapping_add(number as u64 * size) as *const c_void;
        // SAFETY: at most 4 bytes, for which there is room. The helper checks the address itself.
        error |= unsafe { bpf_probe_read_user((&raw mut character).cast(), size as u32, from) } as u64;
        let character = character as u64;
        // 1 for each number of bits that is exceeded.
        let above = |most: u64| most.wrapping_sub(character) >> 63;
        let more = above(0x7f) + above(0x7ff) + above(0xffff);
        let mark = 0xf0_e0_c0_00_u64 >> (8 * more) & 0xff;
        let sixes = |place: u64| character >> (6 * (more.wrapping_sub(place) & 3)) & 0x3f | 0x80;
        // SAFETY: the place is within the field, and 4 bytes have room there or behind it.
        unsafe {
            let to = to.add(length as usize);
            to.write((mark | character >> (6 * more)) as u8);
            to.add(1).write(sixes(1) as u8);
            to.add(2).write(sixes(2) as u8);
            to.add(3).write(sixes(3) as u8);
        }
        length += 1 + more;
        true
    });
    // SAFETY: as above. The last character may have left bytes behind itself.
    unsafe {
        let to = to.add(length.min(LAST + 4) as usize);
        to.write(0);
        to.add(1).write(0);
        to.add(2).write(0);
    }
    bytes[MAX_TEXT / 8] = 0;
    (error == 0).then_some(length.min(MAX_TEXT as u64))
}
