//! Writes an event: the usual path, in assembly.
//!
//! It is not in Rust for three reasons. Stable `no_std` Rust cannot reach a thread-local variable
//! without a call. The caller is a scope in somebody's function, where every changed register must
//! be saved: here five of them, seven at the exit. And one instruction must take the slot, so that
//! a signal handler comes before it or after it.
//!
//! The time is read first, so that few instructions lie between taking a slot and filling it. One
//! comparison finds the three special cases: the last slot (4080), a full buffer (4096 and more),
//! and a buffer that a fork has wiped (0).
//!
//! All pieces depend on the name of the function, which differs in each copy of this crate in a
//! program: two versions do not collide.

use super::{buffer::Buffer, clock, list, slow::ctrace_marker_slow};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The thread's part, all zeros in a new thread.
#[repr(C)]
pub(super) struct Local {
    /// The buffer to write to; 0 means to take the slow path.
    pub(super) fast: AtomicUsize,
    /// The thread's buffer; 0 means none.
    pub(super) own: AtomicUsize,
}

impl Local {
    /// Opens the fast path to this buffer, if it is the thread's own and has the fast path's clock.
    pub(super) fn open(&self, buffer: &Buffer) {
        let address = list::address(buffer);
        if self.own.load(Relaxed) == address && clock::clock() == clock::TSC {
            self.fast.store(address, Relaxed);
        }
    }
}

/// Puts the time, cut to 48 bits, into rax and the buffer into rcx. Changes rdx.
macro_rules! time_and_buffer {
    () => {
        "mov rcx, qword ptr [rip + {local}.local@gottpoff]
         mov rcx, qword ptr fs:[rcx]
         rdtsc
         movzx edx, dx
         shl rdx, 32
         or rax, rdx"
    };
}

/// Writes word 0 in rax and word 1 in r10 to the next slot of the buffer in rcx. Changes rdx.
macro_rules! write {
    () => {
        "or rax, r11
         test rcx, rcx
         jz {slow}
         mov edx, 16
         xadd dword ptr [rcx + 20], edx
         sub edx, 64
         cmp edx, 4080 - 64
         jae {slow}
         mov qword ptr [rcx + rdx + 64], rax
         mov qword ptr [rcx + rdx + 72], r10
         ret"
    };
}

/// Writes an entry event.
///
/// In: rax, the entry in `ctrace_sites`. Out: r10, word 1; r11, bits 4–19 of the caller's stack
/// pointer where they are in word 0. Changed: rax, rcx, rdx, flags; on the slow path r8, r9 and the
/// vector registers as well. The caller's stack is aligned as for any call.
#[unsafe(naked)]
pub extern "C" fn ctrace_marker_enter() {
    naked_asm!(
        ".balign 16",
        ".cfi_startproc",
        "lea r11, [rsp + 8]
         mov r10, r11
         shr r10, 20
         shl r10, 47
         or r10, rax
         shl r11, 44",
        time_and_buffer!(),
        write!(),
        ".cfi_endproc",
        // The thread's part.
        ".pushsection .tbss,\"awT\",@nobits",
        ".balign 8",
        ".globl {local}.local",
        ".hidden {local}.local",
        ".type {local}.local, @object",
        ".size {local}.local, 16",
        "{local}.local: .zero 16",
        ".popsection",
        // The start and end functions, placed here so that no linker drops them.
        ".pushsection .init_array,\"aw\",@init_array",
        ".balign 8",
        ".quad {loaded}",
        ".popsection",
        ".pushsection .fini_array,\"aw\",@fini_array",
        ".balign 8",
        ".quad {unloaded}",
        ".popsection",
        // The functions for other tools, which nothing here calls.
        ".long {named_enter}.named - .",
        ".long {named_exit}.named - .",
        local = sym ctrace_marker_enter,
        slow = sym slow_entry,
        loaded = sym super::thread::loaded,
        unloaded = sym super::thread::unloaded,
        named_enter = sym super::named::enter,
        named_exit = sym super::named::exit,
    )
}

/// Writes the exit. It goes into the slot of its entry, which becomes a whole call, if that slot is
/// the last one taken, the call was short, and its stack pointer is near the buffer's. Otherwise it
/// becomes an event of its own.
///
/// The site and stack pointer prove that the last slot is of this call. A handler before the
/// `cmpxchg` may have emptied the buffer. Then the slot holds something else, or an entry of the
/// same scope at another time, whose word 1 is restored.
///
/// In: r10 and r11 as `enter` returned them. Changed: as `enter` does, r8, r9.
#[unsafe(naked)]
pub(super) extern "C" fn ctrace_marker_exit() {
    naked_asm!(
        ".balign 16",
        ".cfi_startproc",
        time_and_buffer!(),
        "test rcx, rcx
         jz 23f
         mov edx, dword ptr [rcx + 20]
         lea r8d, [rdx - 80]
         cmp r8d, 4080 - 80
         ja 23f",
        // Checks whether its stack pointer is near the buffer's.
        "mov r8, r11
         shr r8, 44
         mov r9, r10
         shr r9, 47
         shl r9, 20
         or r8, r9
         sub r8, qword ptr [rcx + 56]
         add r8, {near}
         shl r8, 64 - 37
         shr r8, 64 - 37 + 20
         jnz 23f",
        // Checks whether the entry in the slot has the same low bits of it.
        "mov r9, qword ptr [rcx + rdx - 16]
         mov r8, r9
         xor r8, r11
         shr r8, 48
         jnz 23f",
        // The duration.
        "mov r8, rax
         sub r8, r9
         shl r8, 16
         shr r8, 16
         mov r9, r8
         shr r9, 17
         jnz 23f",
        // It replaces the stack pointer's high bits.
        "shl r8, 47
         mov r9, r10
         shl r9, 17
         shr r9, 17
         lea r8, [r8 + r9 + 2]
         mov r9, rax
         mov rax, r10
         cmpxchg qword ptr [rcx + rdx - 8], r8
         jne 22f",
        // Checks whether the entry's time is still the exit's less the duration.
        "mov rax, r8
         shr rax, 47
         sub rax, r9
         add rax, qword ptr [rcx + rdx - 16]
         shl rax, 16
         jnz 24f
         21:
         add word ptr [rcx + 42], 1
         ret
         24:
         mov rax, r8
         cmpxchg qword ptr [rcx + rdx - 8], r10
         jne 21b",
        "22:
         mov rax, r9",
        "23:
         or r10, 1",
        write!(),
        ".cfi_endproc",
        local = sym ctrace_marker_enter,
        slow = sym slow_entry,
        near = const 1 << 19,
    )
}

/// Calls Rust from the registers of the two above, and returns to their caller.
#[unsafe(naked)]
extern "C" fn slow_entry() {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push rsi
         push rdi
         push r10
         push r11
         cld
         mov rdi, qword ptr fs:[0]
         add rdi, qword ptr [rip + {local}.local@gottpoff]
         mov rsi, rcx
         mov rcx, rax
         mov r8, r10
         call {slow}
         pop r11
         pop r10
         pop rdi
         pop rsi
         pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        local = sym ctrace_marker_enter,
        slow = sym ctrace_marker_slow,
    )
}

/// Returns the address of the buffer to write to; 0 means to take the slow path.
#[inline(always)]
pub(super) fn fast() -> usize {
    let fast;
    // SAFETY: reads a word of this thread's part, as `enter` does.
    unsafe {
        core::arch::asm!(
            "mov {fast}, qword ptr [rip + {local}.local@gottpoff]",
            "mov {fast}, qword ptr fs:[{fast}]",
            fast = out(reg) fast,
            local = sym ctrace_marker_enter,
            options(nostack, readonly, preserves_flags),
        );
    }
    fast
}

/// Returns the thread's part, for callers other than `enter`.
#[unsafe(naked)]
pub(super) extern "C" fn local() -> *const Local {
    naked_asm!(
        "mov rax, qword ptr fs:[0]",
        "add rax, qword ptr [rip + {local}.local@gottpoff]",
        "ret",
        local = sym ctrace_marker_enter,
    )
}
