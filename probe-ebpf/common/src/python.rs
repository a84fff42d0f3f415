//! Where a process keeps its Python functions: an element of the map `PYTHONS`.
//!
//! User space knows the version of the interpreter, and where it is loaded. The programs follow these
//! offsets from there to the frame of the calling thread.

/// Threads whose place in their list is remembered, at most.
pub const MOST_PYTHON_THREADS: u32 = 16384;

/// Stands for no offset: a thread's frame is in its own structure, not in another one.
pub const NO_OFFSET: u32 = u32::MAX;

/// Byte offsets in the structures of one version of CPython.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonOffsets {
    /// `PyInterpreterState.next`
    pub next_interpreter: u32,
    /// `PyInterpreterState.threads.head`
    pub first_thread: u32,
    /// `PyThreadState.next`
    pub next_thread: u32,
    /// `PyThreadState.prev`
    pub previous_thread: u32,
    /// `PyThreadState.thread_id`
    pub thread_id: u32,
    /// `PyThreadState.cframe`, or [`NO_OFFSET`] where there is none.
    pub c_frame: u32,
    /// `_PyCFrame.current_frame`, or `PyThreadState.current_frame`.
    pub frame: u32,
    /// `_PyInterpreterFrame.previous`
    pub previous: u32,
    /// `_PyInterpreterFrame.f_code` or `f_executable`
    pub code: u32,
    /// `_PyInterpreterFrame.owner`
    pub owner: u32,
    /// `PyCodeObject.co_qualname`
    pub qualified_name: u32,
    /// `PyCodeObject.co_filename`
    pub file: u32,
    /// `PyCodeObject.co_firstlineno`
    pub first_line: u32,
    /// The length of `PyASCIIObject`, behind which the characters of ASCII are.
    pub ascii: u32,
    /// The length of `PyCompactUnicodeObject`, behind which other characters are.
    pub wide: u32,
    /// Always 0; keeps the layout free of implicit padding.
    pub reserved: u32,
}

/// See the module.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonPlaces {
    /// The address of `_PyRuntime.interpreters.head`.
    pub interpreters: u64,
    /// The address of `PyCode_Type`, which every function's code names as its type.
    pub code_type: u64,
    /// The address of `PyUnicode_Type`.
    pub text_type: u64,
    pub offsets: PythonOffsets,
}

/// The number of addresses, and that of words behind them.
const ADDRESSES: usize = 3;
const WORDS: usize = size_of::<PythonOffsets>() / 4;

impl PythonPlaces {
    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        let mut bytes = [0; size_of::<Self>()];
        let (addresses, words) = bytes.split_at_mut(8 * ADDRESSES);
        let told: [u64; ADDRESSES] = [self.interpreters, self.code_type, self.text_type];
        for (place, address) in addresses.as_chunks_mut().0.iter_mut().zip(told) {
            *place = address.to_le_bytes();
        }
        for (place, word) in words.as_chunks_mut().0.iter_mut().zip(self.offsets.words()) {
            *place = word.to_le_bytes();
        }
        bytes
    }
}

impl PythonOffsets {
    fn words(&self) -> [u32; WORDS] {
        [
            self.next_interpreter,
            self.first_thread,
            self.next_thread,
            self.previous_thread,
            self.thread_id,
            self.c_frame,
            self.frame,
            self.previous,
            self.code,
            self.owner,
            self.qualified_name,
            self.file,
            self.first_line,
            self.ascii,
            self.wide,
            self.reserved,
        ]
    }
}

/// Which values of a function's entry tell of the Python function around it: for each, one more than its
/// place among the values; 0: none does.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PythonValues {
    /// The text that has the function's qualified name.
    pub name: u8,
    /// The text that has the path of its file.
    pub file: u8,
    /// The number of the line where its definition begins.
    pub line: u8,
    /// Always 0; keeps the layout free of implicit padding.
    pub reserved: u8,
}

impl PythonValues {
    /// None of the values.
    pub const NONE: Self = Self { name: 0, file: 0, line: 0, reserved: 0 };
}

const _: () = assert!(size_of::<PythonPlaces>() == 88);
const _: () = assert!(size_of::<PythonValues>() == 4);
