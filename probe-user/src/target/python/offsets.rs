//! Byte offsets in the structures of CPython. From 3.13 on, `_PyRuntime` begins with a description of them
//! (`_Py_DebugOffsets`). Those of 3.11 and 3.12 are what their headers in `Include/internal` say; they have
//! not changed within either version.

use super::{RUNTIME, Unreadable};
use ctrace_common::{NO_OFFSET, PythonOffsets};
use std::fmt;

/// A version as `PY_VERSION_HEX` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(pub(super) u32);

impl Version {
    fn minor(self) -> [u8; 2] {
        let [major, minor, ..] = self.0.to_be_bytes();
        [major, minor]
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch, _] = self.0.to_be_bytes();
        write!(f, "{major}.{minor}.{patch}")
    }
}

/// `_PyRuntime.interpreters.head`, before 3.13.
const INTERPRETERS: u32 = 40;

const OF_3_11: PythonOffsets = PythonOffsets {
    next_interpreter: 0,
    first_thread: 16,
    next_thread: 8,
    previous_thread: 0,
    thread_id: 152,
    c_frame: 56,
    frame: 8,
    previous: 48,
    code: 32,
    owner: 69,
    qualified_name: 128,
    file: 112,
    first_line: 72,
    ascii: 48,
    wide: 72,
    reserved: 0,
};

const OF_3_12: PythonOffsets = PythonOffsets {
    next_interpreter: 0,
    first_thread: 72,
    next_thread: 8,
    previous_thread: 0,
    thread_id: 136,
    c_frame: 56,
    frame: 0,
    previous: 8,
    code: 0,
    owner: 70,
    qualified_name: 128,
    file: 112,
    first_line: 68,
    ascii: 40,
    wide: 56,
    reserved: 0,
};

/// The length of `PyCompactUnicodeObject` behind its first part, which the description has.
const WIDE_PART: u32 = 16;

/// How the description begins, and the words of it that are needed, counted from there.
const COOKIE: &[u8] = b"xdebugpy";
mod at {
    pub(super) const VERSION: usize = 1;
    pub(super) const FREE_THREADED: usize = 2;
    pub(super) const INTERPRETERS_HEAD: usize = 5;
    pub(super) const NEXT_INTERPRETER: usize = 8;
    pub(super) const THREADS_HEAD: usize = 9;
    pub(super) const PREVIOUS_THREAD: usize = 20;
    pub(super) const NEXT_THREAD: usize = 21;
    pub(super) const CURRENT_FRAME: usize = 23;
    pub(super) const THREAD_ID: usize = 24;
    pub(super) const PREVIOUS: usize = 29;
    pub(super) const EXECUTABLE: usize = 30;
    pub(super) const OWNER: usize = 33;
    pub(super) const FILE: usize = 35;
    pub(super) const QUALIFIED_NAME: usize = 37;
    pub(super) const FIRST_LINE: usize = 39;
    pub(super) const OBJECT_TYPE: usize = 45;
    pub(super) const TEXT_STATE: usize = 68;
    pub(super) const TEXT_LENGTH: usize = 69;
    pub(super) const ASCII_SIZE: usize = 70;
    pub(super) const END: usize = 71;
}

/// Bytes of the description that are read.
pub(super) const DESCRIPTION: usize = 8 * at::END;
/// The offsets that the programs know by themselves.
const OBJECT_TYPE: u64 = 8;
const TEXT_LENGTH: u64 = 16;
const TEXT_STATE: u64 = 32;
/// No structure is larger: an offset beyond it is none.
const LARGEST: u64 = 1 << 24;

/// Returns the offset of the first interpreter in `_PyRuntime`, and those behind it. `description` reads what
/// `_PyRuntime` begins with.
pub(super) fn of<'a>(
    version: Version,
    description: impl FnOnce() -> Option<&'a [u8]>,
) -> Result<(u32, PythonOffsets), Unreadable> {
    match version.minor() {
        [3, 11] => Ok((INTERPRETERS, OF_3_11)),
        [3, 12] => Ok((INTERPRETERS, OF_3_12)),
        [3, 13] => {
            let words = description().filter(|bytes| bytes.starts_with(COOKIE));
            described(version, words.ok_or(Unreadable::Senseless(RUNTIME))?)
        }
        [3, ..=10] | [..=2, _] => Err(Unreadable::Older),
        _ => Err(Unreadable::Unknown(version)),
    }
}

fn described(version: Version, bytes: &[u8]) -> Result<(u32, PythonOffsets), Unreadable> {
    let senseless = Unreadable::Senseless(RUNTIME);
    let word = |at: usize| bytes.as_chunks().0.get(at).map(|word| u64::from_le_bytes(*word));
    let is = |at: usize, expected: u64| word(at) == Some(expected);
    if word(at::FREE_THREADED).is_none_or(|is_free| is_free != 0) {
        return Err(Unreadable::FreeThreaded(version));
    }
    let fits = is(at::VERSION, version.0.into())
        && is(at::OBJECT_TYPE, OBJECT_TYPE)
        && is(at::TEXT_LENGTH, TEXT_LENGTH)
        && is(at::TEXT_STATE, TEXT_STATE);
    if !fits {
        return Err(senseless);
    }
    let offset = |at: usize| {
        let offset = word(at).filter(|offset| *offset < LARGEST);
        offset.map(|offset| offset as u32).ok_or(Unreadable::Senseless(RUNTIME))
    };
    let ascii = offset(at::ASCII_SIZE)?;
    let offsets = PythonOffsets {
        next_interpreter: offset(at::NEXT_INTERPRETER)?,
        first_thread: offset(at::THREADS_HEAD)?,
        next_thread: offset(at::NEXT_THREAD)?,
        previous_thread: offset(at::PREVIOUS_THREAD)?,
        thread_id: offset(at::THREAD_ID)?,
        c_frame: NO_OFFSET,
        frame: offset(at::CURRENT_FRAME)?,
        previous: offset(at::PREVIOUS)?,
        code: offset(at::EXECUTABLE)?,
        owner: offset(at::OWNER)?,
        qualified_name: offset(at::QUALIFIED_NAME)?,
        file: offset(at::FILE)?,
        first_line: offset(at::FIRST_LINE)?,
        ascii,
        wide: ascii + WIDE_PART,
        reserved: 0,
    };
    Ok((offset(at::INTERPRETERS_HEAD)?, offsets))
}
