//! Follows the control flow of one function from its entry to find every way out of it.
//!
//! This is recursive disassembly, never a scan. Bytes that no path reaches may be data, and a
//! breakpoint in data changes what the program computes. A function is its unwind entry and the
//! parts that its jumps lead to. If a path cannot be followed, the result says so.

use crate::target::elf::frames::{Cfa, FrameEntry, FrameRule, Start, cfa_at};
use crate::target::place::code::CodeMap;
use crate::target::place::code::extent::{Extent, Mark};
use crate::target::place::code::landing::landing_pads;
use crate::target::place::code::slot::touches_return_address;
use crate::target::place::code::switches::{self, Switch};
use crate::target::read::budget::Ticker;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use std::collections::BTreeSet;

/// A way out, at an instruction's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Ret,
    /// A jump to another function, with the address if it is known.
    Jump(Option<u64>),
    ConditionalJump(u8),
    /// A jump whose target is known at run time only.
    IndirectJump,
}

/// The facts about a function's control flow.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) extent: Extent,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) ways_out: Vec<(Instruction, Way)>,
    /// Jump targets inside the function.
    pub(crate) targets: BTreeSet<u64>,
    /// True if some code may jump to places that are not in `targets`.
    pub(crate) targets_unknown: bool,
    /// True if the return address is read, moved or replaced.
    pub(crate) touches_return_address: bool,
    /// The reason why ways out may be missing.
    pub(crate) trouble: Option<String>,
    /// True if the first bytes are no instructions.
    pub(crate) broken_at_entry: bool,
}

/// Follows the function in `entry..end`. `frame` is its unwind entry, if any.
pub(crate) fn follow(map: &CodeMap<'_>, entry: u64, end: u64, frame: Option<&FrameEntry>) -> Flow {
    let mut walk = Walk {
        map,
        entry,
        flow: Flow::default(),
        rows: Vec::new(),
        pending: Vec::new(),
        runs: Vec::new(),
        has_frames: frame.is_some(),
        pads_unknown: false,
        ticker: map.budget().ticker(),
        is_late: false,
    };
    walk.add_part(entry, end, frame);
    walk.pending.push(entry);
    walk.everything();
    walk.finish()
}

const MAX_PARTS: usize = 16;
/// Far more bytes than the largest functions have.
const MAX_LENGTH: usize = 4 << 20;

struct Walk<'map, 'data> {
    map: &'map CodeMap<'data>,
    entry: u64,
    flow: Flow,
    /// The rules for the frame's base of all parts, by address.
    rows: Vec<FrameRule>,
    pending: Vec<u64>,
    /// Indirect jumps not yet looked at: the begin and end of their straight line in
    /// `instructions`.
    runs: Vec<(usize, usize)>,
    has_frames: bool,
    pads_unknown: bool,
    ticker: Ticker<'map>,
    /// True if the object's time is used up.
    is_late: bool,
}

impl Walk<'_, '_> {
    fn add_part(&mut self, start: u64, end: u64, frame: Option<&FrameEntry>) {
        if self.flow.extent.parts() >= MAX_PARTS {
            return self.lost("it is in too many pieces");
        }
        let Some(bytes) = self.map.bytes(start) else {
            return self.lost("its bytes are not in the file");
        };
        let length = usize::try_from(end - start).unwrap_or(usize::MAX).min(bytes.len());
        if length > MAX_LENGTH {
            // Only its beginning is needed.
            self.flow.extent.add(start, MAX_LENGTH);
            return self.lost("it is too large");
        }
        self.flow.extent.add(start, length);
        let Some(frame) = frame else { return };
        self.rows.extend(self.map.frames().rows(frame));
        self.rows.sort_by_key(|row| row.start);
        if let Some(lsda) = frame.lsda {
            match landing_pads(self.map, lsda, frame.start) {
                Some(pads) => self.pending.extend(pads),
                None => self.pads_unknown = true,
            }
        }
    }

    fn everything(&mut self) {
        let mut unresolved = Vec::new();
        loop {
            while let Some(address) = self.pending.pop() {
                if self.flow.trouble.is_some() && self.flow.broken_at_entry || self.is_late {
                    return;
                }
                self.from(address);
            }
            while let Some((from, to)) = self.runs.pop() {
                if self.map.budget().check().is_err() {
                    return self.late();
                }
                if let Some(may_be_switch) = self.indirect(from, to) {
                    unresolved.push(may_be_switch);
                }
            }
            if !self.pending.is_empty() {
                continue;
            }
            if self.map.budget().check().is_err() {
                return self.late();
            }
            // Unreached code matters only if unknown paths exist.
            let unknown = self.pads_unknown || unresolved.iter().any(|&may| may);
            if !unknown || self.flow.trouble.is_some() || !self.adopt() {
                return;
            }
        }
    }

    /// Decodes from `address` until control cannot go on.
    fn from(&mut self, address: u64) {
        let mut at = address;
        let run_start = self.flow.instructions.len();
        let mut after_call = false;
        loop {
            if self.ticker.tick().is_err() {
                return self.late();
            }
            match self.flow.extent.mark(at) {
                None if at == address => match self.outside(at) {
                    Outside::Part(frame) => {
                        self.add_part(frame.start, frame.end, Some(&frame));
                        if self.flow.trouble.is_some() {
                            return;
                        }
                    }
                    _ => return self.lost("a jump table leads out of it"),
                },
                None => return self.fell_out(at, after_call),
                Some(Mark::Instruction) => return,
                Some(Mark::Inside) if self.skips_lock(at) => return,
                Some(Mark::Inside) => return self.lost("its instructions overlap"),
                Some(Mark::Unknown) => {}
            }
            let Some(instruction) = self.decode(at) else {
                self.flow.broken_at_entry |= self.flow.instructions.len() < 2;
                return self.lost("some of its bytes are no instructions");
            };
            if !self.flow.extent.take(at, instruction.len()) {
                return self.lost("its instructions overlap");
            }
            let cfa = cfa_at(&self.rows, at);
            self.flow.touches_return_address |= touches_return_address(&instruction, cfa);
            self.flow.instructions.push(instruction);
            let next = instruction.next_ip();
            match instruction.flow_control() {
                FlowControl::Next => {
                    if instruction.mnemonic() == Mnemonic::Hlt {
                        return;
                    }
                    after_call &= instruction.mnemonic() == Mnemonic::Nop;
                }
                FlowControl::Call => {
                    after_call = true;
                    self.call(&instruction);
                }
                FlowControl::IndirectCall => after_call = true,
                FlowControl::ConditionalBranch => {
                    after_call = false;
                    self.branch(&instruction, cfa);
                }
                FlowControl::UnconditionalBranch => return self.branch(&instruction, cfa),
                FlowControl::IndirectBranch => {
                    return self.runs.push((run_start, self.flow.instructions.len()));
                }
                FlowControl::Return => return self.returns(&instruction),
                FlowControl::XbeginXabortXend => {
                    if instruction.mnemonic() == Mnemonic::Xbegin {
                        self.branch(&instruction, cfa);
                    }
                }
                FlowControl::Interrupt if instruction.mnemonic() == Mnemonic::Int => {}
                FlowControl::Interrupt | FlowControl::Exception => return,
            }
            at = next;
        }
    }

    fn decode(&self, at: u64) -> Option<Instruction> {
        let bytes = self.map.bytes(at)?;
        let bytes = &bytes[..bytes.len().min(self.flow.extent.left(at)).min(15)];
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    /// Recognizes a jump past `lock`: old C libraries have it for single-threaded programs.
    fn skips_lock(&self, at: u64) -> bool {
        let before = at - 1;
        self.flow.extent.mark(before) == Some(Mark::Instruction)
            && self.map.bytes(before).is_some_and(|bytes| bytes.first() == Some(&0xf0))
    }

    fn returns(&mut self, instruction: &Instruction) {
        if instruction.mnemonic() == Mnemonic::Ret {
            self.flow.ways_out.push((*instruction, Way::Ret));
        } else {
            self.trouble("it leaves by an unusual return");
        }
    }

    /// Takes a call into the function itself for a subroutine of hand-written code.
    fn call(&mut self, instruction: &Instruction) {
        if instruction.op0_kind() == OpKind::NearBranch64 {
            let target = instruction.near_branch_target();
            if target != self.entry && self.flow.extent.mark(target).is_some() {
                self.flow.targets.insert(target);
                self.pending.push(target);
            }
        }
    }

    fn branch(&mut self, instruction: &Instruction, cfa: Option<Cfa>) {
        let target = instruction.near_branch_target();
        if self.flow.extent.mark(target).is_some() {
            self.flow.targets.insert(target);
            return self.pending.push(target);
        }
        match self.outside(target) {
            Outside::Part(frame) => {
                self.add_part(frame.start, frame.end, Some(&frame));
                self.flow.targets.insert(target);
                self.pending.push(target);
            }
            Outside::Function => self.leaves(instruction, target),
            Outside::Middle(_) if cfa == Some(Cfa::Rsp(8)) => self.leaves(instruction, target),
            // Control keeps the same frame: a part that happens to begin without one.
            Outside::Middle(frame)
                if cfa.is_some() && cfa == cfa_at(&self.map.frames().rows(&frame), target) =>
            {
                self.add_part(frame.start, frame.end, Some(&frame));
                self.flow.targets.insert(target);
                self.pending.push(target);
            }
            Outside::Middle(_) => self.lost("it goes on inside another function"),
            Outside::Unknown if is_framed(cfa) && self.is_dead_end(target) => {}
            Outside::Unknown => self.lost("it jumps to code that no table describes"),
        }
    }

    /// Returns whether `target` is the end of one of the function's pieces, with nothing but padding
    /// behind it. Compilers make jumps there that nothing takes, as behind a call that they do not
    /// know never to return (`__builtin_unreachable`). With a frame still on the stack, such a jump
    /// is no way out either.
    fn is_dead_end(&self, target: u64) -> bool {
        self.flow.extent.ranges().any(|range| range.end == target) && self.map.is_padding(target)
    }

    fn leaves(&mut self, instruction: &Instruction, target: u64) {
        let way = match instruction.flow_control() {
            FlowControl::UnconditionalBranch => Way::Jump(Some(target)),
            FlowControl::ConditionalBranch if instruction.is_jcc_short_or_near() => {
                let near = instruction.condition_code() as u8;
                Way::ConditionalJump(near.wrapping_sub(1))
            }
            _ => return self.trouble("it leaves by an unusual jump"),
        };
        self.flow.ways_out.push((*instruction, way));
    }

    fn outside(&self, target: u64) -> Outside {
        let map = self.map;
        if map.is_stub(target) {
            return Outside::Function;
        }
        match map.frame(target) {
            Some(frame) if !map.is_function(frame) => match frame.first {
                Start::Signal | Start::Outermost if frame.start == target => Outside::Function,
                _ => Outside::Part(*frame),
            },
            Some(frame) if frame.start == target => Outside::Function,
            Some(frame) => Outside::Middle(*frame),
            None if map.is_code(target) && map.symbols_at(target).any(|s| !s.is_part) => {
                Outside::Function
            }
            None => Outside::Unknown,
        }
    }

    fn fell_out(&mut self, at: u64, after_call: bool) {
        if after_call {
            return;
        }
        match self.outside(at) {
            Outside::Part(frame) => {
                self.add_part(frame.start, frame.end, Some(&frame));
                self.pending.push(at);
            }
            _ => self.trouble("it runs on into the next function"),
        }
    }

    /// Returns `None` if an indirect jump is understood, else whether it may be a switch.
    fn indirect(&mut self, from: usize, to: usize) -> Option<bool> {
        let run = &self.flow.instructions[from..to];
        let jump = *run.last()?;
        if jump.is_ip_rel_memory_operand() {
            let slot = jump.ip_rel_memory_address();
            if self.map.is_got(slot) || self.map.import(slot).is_some() {
                self.flow.ways_out.push((jump, Way::Jump(Some(slot))));
                return None;
            }
        }
        let marked = self.map.bytes(jump.ip()).is_some_and(|bytes| bytes.first() == Some(&0x3e));
        // With a frame still on the stack, the jump cannot be a tail call.
        let framed = is_framed(cfa_at(&self.rows, jump.ip()));
        match switches::read(self.map, run, &self.flow.instructions) {
            Switch::Targets(targets) if self.all_inside(&targets) => {
                self.flow.targets.extend(&targets);
                self.pending.extend(targets);
                Some(true)
            }
            Switch::Targets(_) | Switch::Table | Switch::Unknown if marked || framed => {
                self.flow.targets_unknown = true;
                Some(true)
            }
            Switch::Targets(_) | Switch::Table => {
                self.flow.ways_out.push((jump, Way::IndirectJump));
                self.flow.targets_unknown = true;
                Some(true)
            }
            Switch::Unknown => {
                self.flow.ways_out.push((jump, Way::IndirectJump));
                Some(true)
            }
        }
    }

    fn all_inside(&self, targets: &[u64]) -> bool {
        targets.iter().all(|&target| {
            self.flow.extent.mark(target).is_some()
                || matches!(self.outside(target), Outside::Part(_))
        })
    }

    /// Treats the next unreached piece as reached, if it can be code.
    fn adopt(&mut self) -> bool {
        for (start, end) in self.flow.extent.gaps() {
            let Some(code) = self.past_padding(start, end) else { continue };
            if !self.has_frames {
                self.trouble("a jump of it cannot be followed");
                return false;
            }
            let referred = self.flow.instructions.iter().any(|instruction| {
                instruction.is_ip_rel_memory_operand()
                    && (start..end).contains(&instruction.ip_rel_memory_address())
            });
            if referred {
                self.trouble("there are data among its instructions");
                return false;
            }
            self.flow.targets_unknown = true;
            self.pending.push(code);
            return true;
        }
        false
    }

    fn past_padding(&self, start: u64, end: u64) -> Option<u64> {
        let mut at = start;
        while at < end {
            match self.decode(at) {
                Some(i) if matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) => {
                    at = i.next_ip();
                }
                _ => return Some(at),
            }
        }
        None
    }

    fn late(&mut self) {
        self.is_late = true;
        self.lost("it takes too long to follow");
    }

    /// Tells why some code was not followed: it may jump anywhere.
    fn lost(&mut self, why: &str) {
        self.flow.targets_unknown = true;
        self.trouble(why);
    }

    fn trouble(&mut self, why: &str) {
        self.flow.trouble.get_or_insert_with(|| why.to_owned());
    }

    fn finish(mut self) -> Flow {
        self.flow.ways_out.sort_by_key(|(instruction, _)| instruction.ip());
        self.flow.ways_out.dedup_by_key(|(instruction, _)| instruction.ip());
        self.flow
    }
}

/// Returns whether a function has a frame on the stack, besides its return address.
fn is_framed(cfa: Option<Cfa>) -> bool {
    matches!(cfa, Some(Cfa::Rsp(9..) | Cfa::Rbp(_)))
}

enum Outside {
    /// A part of some function, entered by a jump.
    Part(FrameEntry),
    /// The start of another function.
    Function,
    /// The middle of another function.
    Middle(FrameEntry),
    Unknown,
}
