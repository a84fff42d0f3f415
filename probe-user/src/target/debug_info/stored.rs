//! Words that a function stores to its frame before it changes them.
//!
//! A parameter whose address is taken, such as one that is printed, has its place in the frame from
//! the first instruction to the last, says debug information. It is not there yet when the function
//! is entered: the first instructions store it. So what they store there first is the parameter,
//! and the register that it comes from has it at the entry.

use super::overwritten::Overwritten;
use super::passed::{Passed, Word, low};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};

/// Bytes of a function that are looked at.
pub(crate) const LOOKED_AT: usize = 512;
/// The registers of integers and pointers, in their order.
const PASSED: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
/// Registers by their numbers in debug information, but for the frame and the stack pointer.
const DESCRIBED: [Register; 6] =
    [Register::RAX, Register::RDX, Register::RCX, Register::RBX, Register::RSI, Register::RDI];
/// The last 8 bytes on the stack that are told apart.
const LAST_SLOT: i64 = 63;

/// The first store to some bytes of the frame. All places are relative to the return address.
#[derive(Debug)]
struct Store {
    at: i64,
    bytes: u64,
    /// `None`: something else.
    word: Option<Word>,
    /// True once something else was stored there.
    is_over: bool,
}

/// What a function stores before its first jump or call.
#[derive(Debug)]
pub(super) struct Stored {
    code: Vec<u8>,
    stores: Vec<Store>,
    /// The stack pointer behind the function's beginning, if it is known, and the frame pointer.
    stack: Option<i64>,
    frame: Option<i64>,
    overwritten: Overwritten,
}

/// The register that the base of a frame is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    StackPointer,
    FramePointer,
    /// The address behind the return address.
    Caller,
}

/// What is in some bytes of a frame.
pub(super) enum Within {
    /// The caller has put it there.
    Stack(u8),
    /// The bytes before a word, its bytes, and the word. Other bytes are not known.
    Words(Vec<(u64, u64, Word)>),
}

impl Stored {
    /// Follows the first instructions of a function.
    pub(super) fn read(code: Vec<u8>) -> Self {
        let reader = Reader::follow(&code, u64::MAX);
        // A function without a frame may make it behind its first jump. Where it has used it, it is made.
        let is_made = |stack: i64| stack != 0 || reader.is_left || !reader.stores.is_empty();
        let stack = reader.body.filter(|stack| !reader.is_moved && is_made(*stack));
        let (stores, overwritten) = (reader.stores, reader.overwritten);
        Self { stores, stack, frame: reader.frame, overwritten, code }
    }

    /// Returns the register that had at the entry what another one, by its number in debug information,
    /// has behind so many bytes of code.
    pub(super) fn address_in(&self, register: u16, later: u64) -> Option<u8> {
        let reader = Reader::follow(&self.code, later);
        let register = DESCRIBED.get(usize::from(register))?;
        let word = reader.registers.word(*register).filter(|_| reader.at == later)?;
        match word {
            Word { from: Passed::Register(number), shift: 0, mask: u64::MAX } => Some(number),
            _ => None,
        }
    }

    /// Returns whether these instructions write to memory before they read it, behind the address that comes in
    /// the register of this number.
    pub(super) fn overwrites(&self, register: u8) -> bool {
        self.overwritten.is(register)
    }

    /// Returns the place of something that is so far from the base of the frame.
    pub(super) fn place(&self, base: Base, offset: i64) -> Option<i64> {
        let base = match base {
            Base::StackPointer => self.stack?,
            Base::FramePointer => self.frame?,
            Base::Caller => 8,
        };
        base.checked_add(offset)
    }

    /// Returns what was put first into some bytes of the frame.
    pub(super) fn within(&self, at: i64, bytes: u64) -> Option<Within> {
        if let Some(slot) = slot(at) {
            return Some(Within::Stack(slot));
        }
        let end = at.checked_add(i64::try_from(bytes).ok()?)?;
        let inside = |store: &&Store| store.at < end && store.end() > at;
        let mut words = Vec::new();
        for store in self.stores.iter().filter(inside) {
            if store.at < at || store.end() > end {
                return None;
            }
            words.extend(store.word.map(|word| ((store.at - at) as u64, store.bytes, word)));
        }
        words.sort_by_key(|(offset, ..)| *offset);
        Some(Within::Words(words))
    }

    /// Returns the 8 bytes that were put first to a place.
    pub(super) fn pointer(&self, at: i64) -> Option<Word> {
        let store = self.stores.iter().find(|store| store.at == at && store.bytes == 8)?;
        store.word.filter(|word| word.shift == 0 && word.mask == u64::MAX)
    }
}

impl Store {
    fn end(&self) -> i64 {
        self.at.saturating_add(self.bytes as i64)
    }
}

/// Returns the number of 8 bytes that the caller has put on the stack.
fn slot(at: i64) -> Option<u8> {
    let slot = at.checked_sub(8).filter(|it| *it >= 0 && it % 8 == 0)? / 8;
    (slot <= LAST_SLOT).then_some(slot as u8)
}

/// What registers have while the first instructions are followed.
struct Reader {
    registers: Registers,
    stack: i64,
    frame: Option<i64>,
    /// The stack pointer where the function's body begins.
    body: Option<i64>,
    /// True once the body has moved it, other than to leave the function.
    is_moved: bool,
    /// True once the function was left, or is about to be.
    is_left: bool,
    stores: Vec<Store>,
    overwritten: Overwritten,
    facts: InstructionInfoFactory,
    /// The bytes of code that were followed.
    at: u64,
}

/// The word that each general register has.
struct Registers([Option<Word>; 16]);

impl Default for Registers {
    fn default() -> Self {
        let mut all = [None; 16];
        for (at, register) in PASSED.into_iter().enumerate() {
            all[register.number()] = Some(Word::whole(Passed::Register(at as u8)));
        }
        Self(all)
    }
}

impl Registers {
    /// Returns what the low bytes of a register have.
    fn word(&self, register: Register) -> Option<Word> {
        let is_low = register.is_gpr() && !is_high(register);
        let word = is_low.then(|| self.0[register.full_register().number()])??;
        Some(word.masked(low(register.size() as u64)))
    }

    fn set(&mut self, register: Register, word: Option<Word>) {
        if register.is_gpr() {
            self.0[register.full_register().number()] = word.filter(|_| !is_high(register));
        }
    }
}

/// Returns whether a register is the second byte of another one.
fn is_high(register: Register) -> bool {
    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
}

impl Reader {
    /// Follows the first instructions, up to so many bytes and to a jump or call.
    fn follow(code: &[u8], end: u64) -> Self {
        let mut reader = Self {
            registers: Registers::default(),
            stack: 0,
            frame: None,
            body: None,
            is_moved: false,
            is_left: false,
            stores: Vec::new(),
            overwritten: Overwritten::default(),
            facts: InstructionInfoFactory::new(),
            at: 0,
        };
        for instruction in Decoder::with_ip(64, code, 0, DecoderOptions::NONE) {
            let goes_on = instruction.flow_control() == FlowControl::Next
                && instruction.code() != Code::INVALID;
            reader.is_left |= instruction.flow_control() == FlowControl::Return
                || reader.body.is_some() && leaves(&instruction);
            if reader.at >= end || !goes_on || reader.is_left || !reader.step(&instruction) {
                break;
            }
            reader.at = instruction.next_ip();
        }
        reader
    }

    /// Follows an instruction. Returns false where the frame is no longer known.
    fn step(&mut self, it: &Instruction) -> bool {
        let stack = self.stack;
        let (to, from) = (it.op0_register(), it.op1_register());
        let kinds = (it.op0_kind(), it.op1_kind());
        match (it.mnemonic(), kinds) {
            (Mnemonic::Endbr64 | Mnemonic::Nop, _) => return true,
            (Mnemonic::Push, _) if self.body.is_none() => {
                self.stack = stack.saturating_sub(8);
                return true;
            }
            (Mnemonic::Sub, (OpKind::Register, kind)) if to == Register::RSP => {
                if !is_immediate(kind) || self.body.is_some() {
                    self.is_moved = true;
                    return false;
                }
                self.stack = stack.saturating_sub(it.immediate(1) as i64);
                return true;
            }
            (Mnemonic::Mov, _) if to == Register::RBP && from == Register::RSP => {
                self.frame = Some(stack);
                self.registers.set(to, None);
                return true;
            }
            _ => {}
        }
        self.body.get_or_insert(stack);
        let word = match (it.mnemonic(), kinds) {
            (Mnemonic::Mov | Mnemonic::Movzx, (OpKind::Register, OpKind::Register)) => {
                Some(self.registers.word(from))
            }
            (Mnemonic::Mov, (OpKind::Register, OpKind::Memory)) => {
                let word = self.place(it).and_then(|at| self.loaded(at, to.size() as u64));
                Some(word.map(|word| word.masked(low(to.size() as u64))))
            }
            (Mnemonic::And, (OpKind::Register, kind)) if is_immediate(kind) => {
                Some(self.registers.word(to).map(|word| word.masked(it.immediate(1))))
            }
            _ => None,
        };
        let stored = (it.mnemonic() == Mnemonic::Mov && kinds.1 == OpKind::Register)
            .then(|| self.registers.word(from))
            .flatten();
        let place = self.place(it);
        let used = self.facts.info(it);
        for memory in used.used_memory() {
            if let Some(Word { from: Passed::Register(number), shift: 0, mask: u64::MAX }) =
                self.registers.word(memory.base())
            {
                let at = memory.displacement() as i64;
                let bytes = match memory.index() {
                    Register::None => at..at.saturating_add(memory.memory_size().size() as i64),
                    _ => i64::MIN..i64::MAX,
                };
                self.overwritten.note(number, bytes, memory.access());
            }
        }
        let written = used.used_registers().iter().filter(|used| writes(used.access()));
        for register in written.map(|used| used.register()) {
            match register.full_register() {
                Register::RSP => {
                    self.is_moved = true;
                    return false;
                }
                Register::RBP => self.frame = None,
                _ => {}
            }
            self.registers.set(register, None);
        }
        if let Some(memory) = used.used_memory().iter().find(|used| writes(used.access()))
            && let Some(at) = place
        {
            let bytes = memory.memory_size().size() as u64;
            self.store(Store { at, bytes, word: stored, is_over: false });
        }
        if let Some(word) = word {
            self.registers.set(to, word);
        }
        true
    }

    /// Returns the place in the frame that an instruction reads or writes.
    fn place(&self, it: &Instruction) -> Option<i64> {
        let base = match it.memory_base() {
            Register::RSP => self.stack,
            Register::RBP => self.frame?,
            _ => return None,
        };
        let is_plain = it.memory_index() == Register::None;
        is_plain.then(|| base.checked_add(it.memory_displacement64() as i64))?
    }

    /// Returns what is in so many bytes of the stack.
    fn loaded(&self, at: i64, bytes: u64) -> Option<Word> {
        if let Some(slot) = slot(at) {
            return Some(Word::whole(Passed::Stack(slot)));
        }
        let kept = |it: &&Store| it.at == at && it.bytes == bytes && !it.is_over;
        self.stores.iter().find(kept)?.word
    }

    /// Keeps a store, if it is the first one to its bytes.
    fn store(&mut self, store: Store) {
        let mut is_first = true;
        for earlier in &mut self.stores {
            if earlier.end() > store.at && earlier.at < store.end() {
                (earlier.is_over, is_first) = (true, false);
            }
        }
        if is_first {
            self.stores.push(store);
        }
    }
}

/// Returns whether an instruction gives room on the stack back, as functions do before they return.
fn leaves(it: &Instruction) -> bool {
    match it.mnemonic() {
        Mnemonic::Pop | Mnemonic::Leave => true,
        Mnemonic::Add => {
            it.op0_register() == Register::RSP
                && is_immediate(it.op1_kind())
                && it.immediate(1) as i64 > 0
        }
        _ => false,
    }
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate32
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
            | OpKind::Immediate16
            | OpKind::Immediate64
    )
}

fn writes(access: OpAccess) -> bool {
    !matches!(access, OpAccess::None | OpAccess::NoMemAccess | OpAccess::Read | OpAccess::CondRead)
}

#[cfg(test)]
#[path = "stored_tests.rs"]
mod tests;
