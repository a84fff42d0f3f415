//! The Python function that the current thread runs, around the C function of a probe: read from the
//! interpreter's structures.
//!
//! The thread is stopped in the probe, so its own frames do not change. Others may begin and end meanwhile:
//! the list of threads is followed for a bounded number of steps, and whatever is taken for code or a text
//! must name that as its type. So a list that changed, or a version with other offsets, gives nothing
//! rather than something wrong.

use crate::{
    kernel::Kernel,
    maps::{PYTHON_THREADS, PYTHONS},
    output::Task,
    ring::Room,
    settings,
    turns::{repeat, unknown_zero},
};
use aya_ebpf::helpers::generated::bpf_probe_read_user;
use core::ffi::c_void;
use ctrace_common::{CountedValue, MAX_TEXT, NO_OFFSET, PythonPlaces, SLOT_LEN, TEXT_SLOTS};

/// Threads and interpreters that are looked at, at most.
const MOST_STEPS: u32 = 1024;
/// A thread that is so far down the list is remembered.
const FAR: u32 = 8;
/// The entry of C code into the interpreter is a frame of its own, without a function. At most so many of these are
/// passed over.
const MOST_FRAMES: u32 = 4;

/// `FRAME_OWNED_BY_CSTACK`: the owner of such a frame. No owner has this number before 3.12.
const OWNED_BY_C: u64 = 3;

/// `PyObject.ob_type`, in builds with one lock for all threads.
const OBJECT_TYPE: u64 = 8;
/// `PyASCIIObject.length` and `PyASCIIObject.state`.
const TEXT_LENGTH: u64 = 16;
const TEXT_STATE: u64 = 32;
/// Bits of `PyASCIIObject.state`: the bytes of a character, and whether these follow the head.
const KIND_SHIFT: u64 = 2;
const COMPACT: u64 = 1 << 5;
const ASCII: u64 = 1 << 6;

/// `…`, in place of the beginning of a long path.
const ELLIPSIS: [u8; 3] = [0xe2, 0x80, 0xa6];
/// The bytes of a long path that are kept. With the sign before them there is room left: a full field would
/// mean that the text goes on.
const KEPT_END: u64 = MAX_TEXT as u64 - 4;
/// Those of them that are in the first half of the field.
const FIRST_KEPT: u64 = (HALF - ELLIPSIS.len()) as u64;
/// Bytes of half a field.
const HALF: usize = SLOT_LEN;

/// The code of a Python function.
pub struct Function {
    code: u64,
    pub places: &'static PythonPlaces,
}

/// Reads a word; 0 if that fails. It is a function of its own: the stack of its callers is nearly full.
#[cold]
#[inline(never)]
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
fn frame(places: &PythonPlaces, tid: u32) -> u64 {
    let offsets = &places.offsets;
    let own = Kernel::current().word(&settings::TASK_FSBASE);
    let zero = unknown_zero();
    let (mut frame, mut thread) = (zero, zero);
    let mut interpreter = word(places.interpreters);
    let is_only = word(interpreter.wrapping_add(offsets.next_interpreter as u64)) == 0;
    if let Some(known) = PYTHON_THREADS.get_ptr(tid) {
        // SAFETY: the map's values live as long as the map.
        let known = unsafe { *known };
        // Another interpreter may have a later frame of this thread.
        if is_only && is_listed(known, interpreter, places) && is_of(known, own, places) {
            frame = frame_of(known, places);
        }
    }
    if frame != 0 {
        return frame;
    }
    let mut steps = 0;
    repeat(
        MOST_STEPS,
        #[inline(always)]
        |number| {
            if thread == 0 {
                if interpreter == 0 {
                    return false;
                }
                thread = word(interpreter.wrapping_add(offsets.first_thread as u64));
                interpreter = word(interpreter.wrapping_add(offsets.next_interpreter as u64));
                return true;
            }
            if is_of(thread, own, places) {
                frame = frame_of(thread, places);
                // A structure that is made for a thread that is about to start has no frame yet, and may have
                // the name of its maker.
                if frame != 0 {
                    steps = number;
                    return false;
                }
            }
            thread = word(thread.wrapping_add(offsets.next_thread as u64));
            true
        },
    );
    if steps >= FAR && is_only {
        // Without room for it, the list is followed again.
        let _ = PYTHON_THREADS.insert(tid, thread, 0);
    }
    frame
}

/// Returns whether a thread's structure is in the list of an interpreter: one that was taken out keeps its contents for
/// a while.
#[inline(always)]
fn is_listed(thread: u64, interpreter: u64, places: &PythonPlaces) -> bool {
    let offsets = &places.offsets;
    let before = word(thread.wrapping_add(offsets.previous_thread as u64));
    let link = match before {
        0 => interpreter.wrapping_add(offsets.first_thread as u64),
        before => before.wrapping_add(offsets.next_thread as u64),
    };
    word(link) == thread
}

#[inline(always)]
fn is_of(thread: u64, own: u64, places: &PythonPlaces) -> bool {
    word(thread.wrapping_add(places.offsets.thread_id as u64)) == own
}

#[inline(always)]
fn frame_of(thread: u64, places: &PythonPlaces) -> u64 {
    let offsets = &places.offsets;
    let mut holder = thread;
    if offsets.c_frame != NO_OFFSET {
        holder = word(thread.wrapping_add(offsets.c_frame as u64));
    }
    word(holder.wrapping_add(offsets.frame as u64))
}

/// Returns the innermost Python function of the current thread.
#[inline(always)]
pub fn running(task: Task) -> Option<Function> {
    let places = PYTHONS.get_ptr(task.pid)?;
    // SAFETY: the map's values live as long as the map. What is in one may change when its process ends:
    // all that is read with it is checked by its type.
    let places = unsafe { &*places };
    let mut frame = frame(places, task.tid);
    let mut found = unknown_zero();
    repeat(
        MOST_FRAMES,
        #[inline(always)]
        |_| {
            if word(frame.wrapping_add(places.offsets.owner as u64)) & 0xff == OWNED_BY_C {
                frame = word(frame.wrapping_add(places.offsets.previous as u64));
                return frame != 0;
            }
            let code = word(frame.wrapping_add(places.offsets.code as u64));
            if word(code.wrapping_add(OBJECT_TYPE)) == places.code_type {
                found = code;
            }
            false
        },
    );
    (found != 0).then_some(Function { code: found, places })
}

/// Notes that a process has begun with the memory of its parent.
#[inline(always)]
pub fn inherit(parent: u32, child: u32) {
    if settings::PYTHON.load() == 0 {
        return;
    }
    if let Some(places) = PYTHONS.get_ptr(parent) {
        // SAFETY: the map's values live as long as the map.
        let places: &PythonPlaces = unsafe { &*places };
        // A full map leaves the functions of the child unread, which is told.
        let _ = PYTHONS.insert(child, places, 0);
    } else {
        // Of an earlier process with its id.
        let _ = PYTHONS.remove(child);
    }
}

/// Notes that a process runs another program now, or has ended.
#[inline(always)]
pub fn forget(pid: u32) {
    if settings::PYTHON.load() != 0 {
        let _ = PYTHONS.remove(pid);
    }
}

/// Notes that a thread has ended.
#[inline(always)]
pub fn end_thread(tid: u32) {
    if settings::PYTHON.load() != 0 {
        let _ = PYTHON_THREADS.remove(tid);
    }
}

impl Function {
    /// Returns the number of the line where its definition begins.
    #[inline(always)]
    pub fn first_line(&self) -> u64 {
        let line = word(self.code.wrapping_add(self.places.offsets.first_line as u64));
        line as i32 as i64 as u64
    }

    /// Copies one of its texts, and returns the length. `KEEPS_END`: of a long one, the end counts.
    #[inline(always)]
    pub fn text<const KEEPS_END: bool>(&self, offset: u32, to: &mut impl Field) -> Option<u64> {
        let object = word(self.code.wrapping_add(offset as u64));
        if word(object.wrapping_add(OBJECT_TYPE)) != self.places.text_type {
            return None;
        }
        let count = word(object.wrapping_add(TEXT_LENGTH));
        let state = word(object.wrapping_add(TEXT_STATE));
        if state & COMPACT == 0 {
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

/// Room for a text of [`MAX_TEXT`] bytes, in two halves.
pub trait Field {
    /// Copies bytes of the current process into a half, from its byte `AT` on, as far as there is room. Returns
    /// false if they cannot be read.
    fn copy<const AT: usize>(&mut self, half: u64, length: u64, from: u64) -> bool;

    /// Writes the byte at this place, which is below [`MAX_TEXT`].
    fn write(&mut self, at: u64, byte: u8);
}

/// A field of a payload, which begins at this slot.
pub struct InRing<'a> {
    pub room: &'a Room,
    pub slot: u64,
}

impl Field for InRing<'_> {
    #[inline(always)]
    fn copy<const AT: usize>(&mut self, half: u64, length: u64, from: u64) -> bool {
        self.room.copy::<AT>(self.slot + half, length, from)
    }

    #[inline(always)]
    fn write(&mut self, at: u64, byte: u8) {
        self.room.write_byte(self.slot, at, byte);
    }
}

/// A text of a value that is counted. Zeros are behind what is written.
impl Field for CountedValue {
    #[inline(always)]
    fn copy<const AT: usize>(&mut self, half: u64, length: u64, from: u64) -> bool {
        let length = length.min((HALF - AT) as u64) as u32;
        // SAFETY: within the text. The helper checks the address itself.
        unsafe {
            let to = self.text.as_mut_ptr().cast::<u8>().add(half as usize * HALF + AT);
            bpf_probe_read_user(to.cast(), length, from as *const c_void) == 0
        }
    }

    #[inline(always)]
    fn write(&mut self, at: u64, byte: u8) {
        // SAFETY: within the text.
        unsafe { self.text.as_mut_ptr().cast::<u8>().add(at as usize % MAX_TEXT).write(byte) };
    }
}

/// Copies a text of one byte a character.
#[inline(always)]
fn ascii<const KEEPS_END: bool>(to: &mut impl Field, from: u64, count: u64) -> Option<u64> {
    if KEEPS_END && count > MAX_TEXT as u64 {
        let from = from.wrapping_add(count - KEPT_END);
        const BEGINNING: usize = ELLIPSIS.len();
        let is_read = to.copy::<BEGINNING>(0, KEPT_END, from)
            && to.copy::<0>(1, KEPT_END - FIRST_KEPT, from.wrapping_add(FIRST_KEPT));
        to.write(0, ELLIPSIS[0]);
        to.write(1, ELLIPSIS[1]);
        to.write(2, ELLIPSIS[2]);
        return is_read.then_some(BEGINNING as u64 + KEPT_END);
    }
    let length = count.min(MAX_TEXT as u64);
    let rest = length.saturating_sub(HALF as u64);
    let is_read =
        to.copy::<0>(0, length, from) && to.copy::<0>(1, rest, from.wrapping_add(HALF as u64));
    is_read.then_some(length)
}

/// Copies a text of `kind` bytes a character, as UTF-8. A character that is cut is one that goes on.
#[inline(always)]
fn wide(to: &mut impl Field, from: u64, count: u64, kind: u64) -> Option<u64> {
    let size = (kind.wrapping_sub(1) & 3) + 1;
    let zero = unknown_zero();
    let (mut length, mut error) = (zero, zero);
    repeat(
        MAX_TEXT as u32,
        #[inline(always)]
        |number| {
            if number as u64 >= count || length >= MAX_TEXT as u64 {
                return false;
            }
            let mut character = 0_u32;
            let from = from.wrapping_add(number as u64 * size) as *const c_void;
            // SAFETY: at most 4 bytes, for which there is room. The helper checks the address itself.
            error |= unsafe { bpf_probe_read_user((&raw mut character).cast(), size as u32, from) }
                as u64;
            let character = character as u64;
            // 1 for each number of bits that is exceeded.
            let above = #[inline(always)]
            |most: u64| most.wrapping_sub(character) >> 63;
            let more = above(0x7f) + above(0x7ff) + above(0xffff);
            let mark = 0xf0_e0_c0_00_u64 >> (8 * more) & 0xff;
            let mut put = #[inline(always)]
            |place: u64, byte: u64| {
                if place <= more && length + place < MAX_TEXT as u64 {
                    to.write(length + place, byte as u8);
                }
            };
            let six = #[inline(always)]
            |place: u64| character >> (6 * (more.wrapping_sub(place) & 3)) & 0x3f | 0x80;
            put(0, mark | character >> (6 * more));
            put(1, six(1));
            put(2, six(2));
            put(3, six(3));
            length += 1 + more;
            true
        },
    );
    (error == 0).then_some(length.min(MAX_TEXT as u64))
}

const _: () = assert!(TEXT_SLOTS == 2);
