//! The calls to the kernel and to the C library.
//!
//! System calls are made directly. The C library's would change `errno`, and may be interposed by
//! code that uses scopes itself.

use super::buffer::SIZE;
use core::ffi::{c_int, c_long, c_uint, c_void};

const MMAP: c_long = 9;
const MADVISE: c_long = 28;
const PRCTL: c_long = 157;
const GETTID: c_long = 186;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    pub(super) fn pthread_key_create(
        key: *mut c_uint,
        destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> c_int;
    pub(super) fn pthread_key_delete(key: c_uint) -> c_int;
    pub(super) fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
}

/// # Safety
/// The same conditions hold as for the system call.
unsafe fn call(number: c_long, arguments: [usize; 6]) -> isize {
    let result;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the kernel's convention: these registers in, rax out, rcx and r11 destroyed.
    unsafe {
        core::arch::asm!(
            "syscall",
            inout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            out("rcx") _, out("r11") _,
            options(nostack),
        );
    }
    result
}

/// Returns this thread's id. It is not cached, because a forked child has another.
pub(super) fn gettid() -> u32 {
    // SAFETY: takes nothing, always works.
    (unsafe { call(GETTID, [0; 6]) }) as u32
}

/// Maps 4096 zero bytes that are zeroed in a forked child; `None` without memory.
pub(super) fn map() -> Option<usize> {
    const READ_WRITE: usize = 3;
    const PRIVATE_ANONYMOUS: usize = 0x22;
    const WIPE_ON_FORK: usize = 18;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let address = unsafe { call(MMAP, [0, SIZE, READ_WRITE, PRIVATE_ANONYMOUS, usize::MAX, 0]) };
    if (-4095..0).contains(&address) {
        return None;
    }
    let address = address as usize;
    // SAFETY: the mapping just made. Kernels before 4.14 do not know the advice; ctrace does not
    // run there.
    unsafe { call(MADVISE, [address, SIZE, WIPE_ON_FORK, 0, 0, 0]) };
    Some(address)
}

/// Names this thread: at most 15 bytes, and a zero byte behind them.
pub(super) fn set_thread_name(name: &[u8; 16]) {
    const SET_NAME: usize = 15;
    // SAFETY: reads 16 bytes.
    unsafe { call(PRCTL, [SET_NAME, name.as_ptr() as usize, 0, 0, 0, 0]) };
}

/// Returns CLOCK_MONOTONIC in nanoseconds, through the vDSO.
pub(super) fn monotonic() -> u64 {
    const CLOCK_MONOTONIC: c_int = 1;
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: a place to write to; the call is async-signal-safe and cannot fail with this clock.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut time) };
    (time.seconds as u64).wrapping_mul(1_000_000_000).wrapping_add(time.nanoseconds as u64)
}
