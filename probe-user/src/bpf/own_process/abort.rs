//! Ends ctrace with one line and the usual failure status when memory or stack runs out. An abort
//! for any other reason stays one, with its core file.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    ffi::c_void,
    mem::MaybeUninit,
    ptr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

const NO_MEMORY: &[u8] =
    b"ctrace: more memory is needed than there is, or than the limits allow (ulimit -v, -d)\n";
const NO_STACK: &[u8] =
    b"ctrace: it ends for that reason: more stack is needed than the limits allow (ulimit -s)\n";

/// A refused request of up to this size is fatal. Larger requests may cope with a refusal.
const LITTLE: usize = 16 << 20;

static ENDS_PLAINLY: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// True if the last large request was refused.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Turns a lack of memory or stack into one line and exit status 125, without a core file. Memory
/// is checked only where [`Memory`] is the allocator.
pub(crate) fn end_plainly() {
    ENDS_PLAINLY.store(true, Ordering::Relaxed);
    // SAFETY: all zeros is a value of it; the handler does only what handlers may do. It needs no
    // stack of its own: Rust detects an overflown stack, and aborts, on another one.
    unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        let handler: extern "C" fn(libc::c_int, *const libc::siginfo_t, *const c_void) = aborted;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGABRT, &action, ptr::null_mut());
    }
}

/// The system's allocator. On a refusal, Rust would print several lines and abort; this one first
/// ends ctrace with one line.
pub struct Memory;

// SAFETY: the system's allocator does it all.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn given(memory: *mut u8, size: usize) -> *mut u8 {
    if size > LITTLE {
        REFUSED.set(memory.is_null());
    } else if memory.is_null() && ENDS_PLAINLY.load(Ordering::Relaxed) {
        end(NO_MEMORY);
    }
    memory
}

extern "C" fn aborted(_: libc::c_int, info: *const libc::siginfo_t, _: *const c_void) {
    // SAFETY: the kernel gives it to every handler like this.
    let by_itself = unsafe { (*info).si_code == libc::SI_TKILL };
    // A panic within a panic aborts, too.
    if by_itself && !thread::panicking() {
        if REFUSED.get() || is_out_of_memory() {
            end(NO_MEMORY);
        }
        if on_signal_stack() {
            end(NO_STACK);
        }
    }
    // SAFETY: both may be called by handlers. The signal comes again once this one returns.
    unsafe {
        libc::signal(libc::SIGABRT, libc::SIG_DFL);
        libc::raise(libc::SIGABRT);
    }
}

/// Returns whether there is no memory for the C library, which aborts where a thread cannot do without.
fn is_out_of_memory() -> bool {
    /// It asks for so much when it has nothing left.
    const SOME: usize = 1 << 20;
    // SAFETY: both may be called by handlers. What is mapped is unmapped again, and nothing of it is used.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(ptr::null_mut(), SOME, libc::PROT_READ, flags, -1, 0);
        memory == libc::MAP_FAILED || libc::munmap(memory, SOME) != 0
    }
}

/// Returns whether this is the stack on which Rust detects the overflow of a thread's own stack.
fn on_signal_stack() -> bool {
    // SAFETY: all zeros is a value of it, and nothing is changed.
    unsafe {
        let mut stack = MaybeUninit::<libc::stack_t>::zeroed().assume_init();
        libc::sigaltstack(ptr::null(), &mut stack) == 0 && stack.ss_flags & libc::SS_ONSTACK != 0
    }
}

fn end(line: &[u8]) -> ! {
    // SAFETY: both may be called by handlers and allocators; the line is as long as that.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len());
        libc::_exit(125);
    }
}
