//! The registers of the interrupted thread that the programs need (x86-64).

use aya_ebpf::{bindings::pt_regs, programs::ProbeContext};

pub struct Registers<'a>(&'a pt_regs);

impl<'a> Registers<'a> {
    #[inline(always)]
    pub fn of(ctx: &'a ProbeContext) -> Self {
        // SAFETY: the context of a probe program is a valid `pt_regs` while the program runs.
        Self(unsafe { &*ctx.regs })
    }

    /// Returns the address of the probe; at a return probe, the address to which the function
    /// returns.
    #[inline(always)]
    pub fn ip(&self) -> u64 {
        self.0.rip
    }

    #[inline(always)]
    pub fn first_argument(&self) -> u64 {
        self.0.rdi
    }

    /// Returns where a function leaves its result, in these two at most.
    #[inline(always)]
    pub fn results(&self) -> [u64; 2] {
        [self.0.rax, self.0.rdx]
    }

    /// Returns the address of the descriptor of the running goroutine, in functions of Go.
    #[inline(always)]
    pub fn goroutine(&self) -> u64 {
        self.0.r14
    }

    #[inline(always)]
    pub fn sp(&self) -> u64 {
        self.0.rsp
    }

    /// Returns the stack pointer at the function's entry, for a return probe: the return has popped
    /// the return address.
    #[inline(always)]
    pub fn entry_sp_at_return(&self) -> u64 {
        self.0.rsp.wrapping_sub(8)
    }

    #[inline(always)]
    pub fn flags(&self) -> u64 {
        self.0.eflags
    }

    /// Returns all general registers in the order of the instruction encoding.
    #[inline(always)]
    pub fn general(&self) -> [u64; 16] {
        let r = self.0;
        [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15,
        ]
    }
}

/// Returns true if a conditional jump with this condition nibble is taken.
#[inline(always)]
pub fn condition_holds(condition: u8, flags: u64) -> bool {
    let carry = flags & 1 != 0;
    let parity = flags >> 2 & 1 != 0;
    let zero = flags >> 6 & 1 != 0;
    let sign = flags >> 7 & 1 != 0;
    let overflow = flags >> 11 & 1 != 0;
    let holds = match condition >> 1 & 7 {
        0 => overflow,
        1 => carry,
        2 => zero,
        3 => carry | zero,
        4 => sign,
        5 => parity,
        6 => sign != overflow,
        _ => zero | (sign != overflow),
    };
    holds != (condition & 1 != 0)
}
