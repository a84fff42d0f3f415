//! Recognises functions that move their stack pointer down by a register, and up again by the same
//! amount. Hand-written code aligns its frame so:
//!
//! ```text
//! mov %rsp,%r11; and $31,%r11; add $512,%r11; sub %r11,%rsp; mov %r11,416(%rsp)
//! …
//! mov 416(%rsp),%r11; add %r11,%rsp; ret
//! ```
//!
//! An addition to the stack pointer otherwise counts as a change of stacks.

use crate::target::place::code::flow::Flow;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::BTreeMap;

/// The most bytes by which a frame may move the stack pointer. Beyond that it may be on another stack.
const LARGEST_FRAME: u64 = 1 << 20;
/// The most instructions between the addition and the end of the function.
const MOST_TO_END: usize = 16;

/// Returns whether the addition to the stack pointer at this address only undoes what the function did
/// at its entry. `flow` is the function as it was followed.
pub(crate) fn is_undone(flow: &Flow, at: u64) -> bool {
    let is_complete = flow.trouble.is_none() && !flow.targets_unknown;
    is_complete && Code::of(flow).is_some_and(|code| code.undoes(at) == Some(true))
}

/// A frame of variable size.
struct Frame {
    /// The register that moves the stack pointer.
    by: Register,
    /// The instruction that moves it down.
    sub: u64,
    /// The instruction that saves the register, and the place from the stack pointer on.
    save: u64,
    slot: i64,
}

struct Code<'a> {
    flow: &'a Flow,
    entry: u64,
    by_address: BTreeMap<u64, &'a Instruction>,
}

impl<'a> Code<'a> {
    fn of(flow: &'a Flow) -> Option<Self> {
        let entry = flow.instructions.first()?.ip();
        let by_address = flow.instructions.iter().map(|it| (it.ip(), it)).collect();
        Some(Self { flow, entry, by_address })
    }

    fn undoes(&self, at: u64) -> Option<bool> {
        let frame = self.frame()?;
        let is_add =
            |it: &Instruction| it.mnemonic() == Mnemonic::Add && it.op0_register() == Register::RSP;
        let add = self.by_address.get(&at).filter(|it| is_add(it))?;
        Some(
            add.op1_register() == frame.by
                && self.ends_behind(add)
                && self.loads_before(add, &frame)
                && self.by_address.values().all(|it| self.keeps(it, &frame, is_add(it))),
        )
    }

    /// Returns the frame that the function makes first thing.
    fn frame(&self) -> Option<Frame> {
        // What leads here may lead to the padding in front.
        let mut line = self.line_from(self.entry).skip_while(|it| it.mnemonic() == Mnemonic::Nop);
        let first = line.next()?;
        let by = first.op0_register();
        let is_eligible = (Register::R8 as usize..=Register::R15 as usize).contains(&(by as usize));
        if first.mnemonic() != Mnemonic::Mov
            || first.op1_register() != Register::RSP
            || !is_eligible
        {
            return None;
        }
        // The first operation leaves the low bits, and the second one makes room.
        let mask = line.next().filter(|it| it.mnemonic() == Mnemonic::And)?;
        let room = line.next().filter(|it| it.mnemonic() == Mnemonic::Add)?;
        let amount = |it: &Instruction| {
            (it.op0_register() == by && is_immediate(it.op1_kind())).then(|| it.immediate(1))
        };
        let most = amount(mask)?.checked_add(amount(room)?)?;
        let sub = line.next().filter(|it| it.mnemonic() == Mnemonic::Sub)?;
        let moves = sub.op0_register() == Register::RSP && sub.op1_register() == by;
        if most > LARGEST_FRAME || !moves {
            return None;
        }
        let save = line.find(|it| touches(it, by))?;
        let is_save =
            save.mnemonic() == Mnemonic::Mov && save.op1_register() == by && is_slot(save);
        let slot = save.memory_displacement64() as i64;
        is_save.then_some(Frame { by, sub: sub.ip(), save: save.ip(), slot })
    }

    /// Returns the instructions from an address on that follow each other whatever happens, up to a jump,
    /// a call, or a place where others lead to.
    fn line_from(&self, start: u64) -> impl Iterator<Item = &'a Instruction> {
        let next = move |last: &&'a Instruction| {
            let is_alone = !self.flow.targets.contains(&last.next_ip());
            let follows = last.flow_control() == FlowControl::Next && is_alone;
            self.by_address.get(&last.next_ip()).copied().filter(|_| follows)
        };
        std::iter::successors(self.by_address.get(&start).copied(), next)
    }

    /// Returns whether the function returns soon after an instruction, whatever happens.
    fn ends_behind(&self, add: &Instruction) -> bool {
        let last = self.line_from(add.ip()).take(MOST_TO_END).last();
        last.is_some_and(|last| last.flow_control() == FlowControl::Return)
    }

    /// Returns whether the register has got its saved value before the addition.
    fn loads_before(&self, add: &Instruction, frame: &Frame) -> bool {
        let mut end = add.ip();
        loop {
            let before = self.by_address.range(..end).next_back().map(|(_, it)| *it);
            let Some(before) = before.filter(|it| it.next_ip() == end) else { return false };
            if self.flow.targets.contains(&end) || before.flow_control() != FlowControl::Next {
                return false;
            }
            if touches(before, frame.by) {
                return before.mnemonic() == Mnemonic::Mov
                    && before.op0_register() == frame.by
                    && is_slot(before)
                    && before.memory_displacement64() as i64 == frame.slot;
            }
            end = before.ip();
        }
    }

    /// Returns whether an instruction leaves the stack pointer and the saved register alone, or is one
    /// of the frame's.
    fn keeps(&self, it: &Instruction, frame: &Frame, is_add: bool) -> bool {
        if it.ip() == frame.sub || it.ip() == frame.save {
            return true;
        }
        let sets_pointer = it.op0_register().full_register() == Register::RSP
            || it.mnemonic() == Mnemonic::Xchg
                && it.op1_register().full_register() == Register::RSP;
        let is_read = matches!(it.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
        if sets_pointer && !is_read {
            return is_add && it.op1_register() == frame.by && self.ends_behind(it);
        }
        let moves = it.stack_pointer_increment() != 0
            && !matches!(it.flow_control(), FlowControl::Return | FlowControl::Call);
        !moves && it.mnemonic() != Mnemonic::Syscall && !self.may_overwrite(it, frame)
    }

    /// Returns whether an instruction may write to the place of the saved register, as far as the stack
    /// pointer leads there.
    fn may_overwrite(&self, it: &Instruction, frame: &Frame) -> bool {
        let writes = it.op0_kind() == OpKind::Memory && it.memory_base() == Register::RSP;
        let (start, length) = (it.memory_displacement64() as i64, it.memory_size().size() as i64);
        let is_behind = start >= frame.slot.saturating_add(8);
        let is_apart = is_behind || length > 0 && start.saturating_add(length) <= frame.slot;
        writes && (it.memory_index() != Register::None || !is_apart)
    }
}

fn is_slot(it: &Instruction) -> bool {
    it.memory_base() == Register::RSP && it.memory_index() == Register::None
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(kind, OpKind::Immediate8to64 | OpKind::Immediate32to64)
}

/// Returns whether an instruction names a register, or a part of it.
fn touches(it: &Instruction, register: Register) -> bool {
    let is_it = |other: Register| other.full_register() == register;
    (0..it.op_count()).any(|op| is_it(it.op_register(op)))
        || is_it(it.memory_base())
        || is_it(it.memory_index())
}
