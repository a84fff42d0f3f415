//! Reads the unwind table `.eh_frame`: the ranges of functions and the places of return addresses.
//!
//! A compiler writes one entry (FDE) per function and one per part that it moved away. At a
//! function's first instruction the return address is at the stack pointer, so the frame's base
//! (CFA) is `rsp+8`. A part entered by a jump starts with the frame that its function has built.
//! That one rule tells real functions from parts that a return probe would destroy.

use crate::target::elf::ElfFile;
use crate::target::read::budget::{Budget, TooLarge};
use crate::target::read::source::Source;
use gimli::{
    BaseAddresses, CallFrameInstruction, CfaRule, CieOrFde, CommonInformationEntry, EhFrame,
    EndianSlice, LittleEndian, Register, UnwindContext, UnwindSection,
};
use object::read::elf::ProgramHeader;
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::ops::Range;

type Slice<'data> = EndianSlice<'data, LittleEndian>;

const RBP: Register = Register(6);
const RSP: Register = Register(7);
const RETURN_ADDRESS: Register = Register(16);

/// The state of the frame where the entry begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The return address is on top of the stack: a function.
    Function,
    /// A frame exists already: a part entered by a jump.
    Part,
    /// There is no return address: `_start` and the first code on a new stack.
    Outermost,
    /// The kernel's signal frame.
    Signal,
}

/// One entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameEntry {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) first: Start,
    /// True if the entry begins with registers that were saved elsewhere.
    pub(crate) has_saved: bool,
    /// Address of the table of landing pads.
    pub(crate) lsda: Option<u64>,
    entry: usize,
}

/// The place of the frame's base, relative to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cfa {
    Rsp(i64),
    Rbp(i64),
    Other,
}

/// The rule for the frame's base over a range of code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRule {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) cfa: Cfa,
}

/// All entries, sorted by address.
#[derive(Debug)]
pub(crate) struct FrameTable<'data> {
    section: EhFrame<Slice<'data>>,
    bases: BaseAddresses,
    frames: Vec<FrameEntry>,
}

impl<'data> FrameTable<'data> {
    pub(crate) fn read(
        file: &ElfFile<'data>,
        source: &Source,
        bytes: &impl Fn(u64) -> Option<&'data [u8]>,
    ) -> Result<Self, TooLarge> {
        let (address, data) = section(file, bytes).unwrap_or((0, &[]));
        let mut bases = BaseAddresses::default().set_eh_frame(address);
        if let Some(text) = file.section_by_name(".text") {
            bases = bases.set_text(text.address());
        }
        if let Some(got) = file.section_by_name(".got") {
            bases = bases.set_got(got.address());
        }
        let section = EhFrame::new(data, LittleEndian);
        let frames = frames(&section, &bases, bytes, source.budget())?;
        Ok(Self { section, bases, frames })
    }

    pub(crate) fn entries(&self) -> &[FrameEntry] {
        &self.frames
    }

    pub(crate) fn containing(&self, address: u64) -> Option<&FrameEntry> {
        let to = self.frames.partition_point(|frame| frame.start <= address);
        let frame = self.frames[..to].last()?;
        (address < frame.end).then_some(frame)
    }

    /// Returns the range without entries around an address that none contains.
    pub(crate) fn gap(&self, address: u64) -> Range<u64> {
        let to = self.frames.partition_point(|frame| frame.start <= address);
        let start = self.frames[..to].last().map_or(0, |frame| frame.end);
        start..self.frames.get(to).map_or(u64::MAX, |frame| frame.start)
    }

    /// Returns whether any function has code that only an unwinder reaches.
    pub(crate) fn have_landing_pads(&self) -> bool {
        self.frames.iter().any(|frame| frame.lsda.is_some())
    }

    /// Returns the rules for the frame's base, instruction by instruction.
    pub(crate) fn rows(&self, frame: &FrameEntry) -> Vec<FrameRule> {
        let parsed = self.section.fde_from_offset(
            &self.bases,
            gimli::EhFrameOffset(frame.entry),
            EhFrame::cie_from_offset,
        );
        let Ok(fde) = parsed else { return Vec::new() };
        let mut context = UnwindContext::new();
        let Ok(mut table) = fde.rows(&self.section, &self.bases, &mut context) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        while rows.len() < MOST_ROWS
            && let Ok(Some(row)) = table.next_row()
        {
            let cfa = match *row.cfa() {
                CfaRule::RegisterAndOffset { register: RSP, offset } => Cfa::Rsp(offset),
                CfaRule::RegisterAndOffset { register: RBP, offset } => Cfa::Rbp(offset),
                _ => Cfa::Other,
            };
            rows.push(FrameRule { start: row.start_address(), end: row.end_address(), cfa });
        }
        rows
    }
}

/// Returns the rule in force at `address`.
pub(crate) fn cfa_at(rows: &[FrameRule], address: u64) -> Option<Cfa> {
    let to = rows.partition_point(|row| row.start <= address);
    let row = rows[..to].last()?;
    (address < row.end).then_some(row.cfa)
}

fn section<'data>(
    file: &ElfFile<'data>,
    bytes: &impl Fn(u64) -> Option<&'data [u8]>,
) -> Option<(u64, &'data [u8])> {
    if let Some(section) = file.section_by_name(".eh_frame") {
        return Some((section.address(), section.data().ok()?));
    }
    // Without section headers, the loader's own header leads there.
    let endian = object::LittleEndian;
    let mut headers = file.elf_program_headers().iter();
    let header = headers.find(|h| h.p_type(endian) == object::elf::PT_GNU_EH_FRAME)?;
    let address = header.p_vaddr(endian);
    let bases = BaseAddresses::default().set_eh_frame_hdr(address);
    let parsed = gimli::EhFrameHdr::new(bytes(address)?, LittleEndian).parse(&bases, 8).ok()?;
    let at = parsed.eh_frame_ptr().direct().ok()?;
    Some((at, bytes(at)?))
}

fn frames<'data>(
    section: &EhFrame<Slice<'data>>,
    bases: &BaseAddresses,
    bytes: &impl Fn(u64) -> Option<&'data [u8]>,
    budget: &Budget,
) -> Result<Vec<FrameEntry>, TooLarge> {
    let mut ticker = budget.ticker();
    let mut cies: HashMap<usize, CommonInformationEntry<Slice<'data>>> = HashMap::new();
    // Thousands of entries may share one long list of instructions.
    let mut openings: HashMap<usize, FirstRule> = HashMap::new();
    let mut frames = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        ticker.tick()?;
        budget.charge(ENTRY)?;
        let CieOrFde::Fde(partial) = entry else { continue };
        let shared = cies.len();
        let parsed = partial.parse(|section, bases, offset| {
            if let Some(cie) = cies.get(&offset.0) {
                return Ok(cie.clone());
            }
            let cie = section.cie_from_offset(bases, offset)?;
            cies.insert(offset.0, cie.clone());
            Ok(cie)
        });
        if cies.len() > shared {
            budget.charge(SHARED_ENTRY)?;
        }
        let Ok(fde) = parsed else { continue };
        let is_long = fde.entry_len() > MOST_BYTES || fde.cie().entry_len() > MOST_SHARED_BYTES;
        let (start, end) = (fde.initial_address(), fde.end_address());
        if start == 0 || end <= start || is_long {
            continue;
        }
        let opened = openings
            .entry(fde.cie().offset())
            .or_insert_with(|| run(fde.cie().instructions(section, bases), FirstRule::default()));
        let rule = run(fde.instructions(section, bases), *opened);
        let first = if fde.is_signal_trampoline() { Start::Signal } else { rule.start() };
        let lsda = fde.lsda().and_then(|pointer| match pointer {
            gimli::Pointer::Direct(address) => Some(address),
            gimli::Pointer::Indirect(slot) => {
                let word = bytes(slot)?.first_chunk::<8>()?;
                Some(u64::from_le_bytes(*word))
            }
        });
        let lsda = lsda.filter(|&address| address != 0);
        let (has_saved, entry) = (rule.has_saved, fde.offset());
        frames.push(FrameEntry { start, end, first, has_saved, lsda, entry });
    }
    frames.sort_unstable_by_key(|frame| (frame.start, frame.end));
    frames.dedup_by_key(|frame| frame.start);
    Ok(frames)
}

/// Bytes that an entry of the table takes.
const ENTRY: u64 = 128;
/// The same of one that others share, with what is known of its instructions.
const SHARED_ENTRY: u64 = 384;
/// Limits of an entry's length, and of the length of one that others share: it is read for each of these, and a
/// crafted one reaches over others. Compilers make dozens of bytes.
const MOST_BYTES: usize = 1 << 20;
const MOST_SHARED_BYTES: usize = 4 << 10;
/// Limit of rules for one function. Later ones count as unknown.
const MOST_ROWS: usize = 1 << 16;

#[derive(Clone, Copy, Default)]
struct FirstRule {
    register: Option<Register>,
    offset: i64,
    no_return_address: bool,
    has_saved: bool,
}

impl FirstRule {
    fn start(self) -> Start {
        if self.no_return_address {
            Start::Outermost
        } else if self.register == Some(RSP) && self.offset == 8 {
            Start::Function
        } else {
            Start::Part
        }
    }
}

/// Returns the rules up to the end of the first instruction.
fn run(
    mut instructions: gimli::CallFrameInstructionIter<'_, Slice<'_>>,
    mut rule: FirstRule,
) -> FirstRule {
    while let Ok(Some(instruction)) = instructions.next() {
        match instruction {
            CallFrameInstruction::AdvanceLoc { .. } | CallFrameInstruction::SetLoc { .. } => break,
            CallFrameInstruction::DefCfa { register, offset } => {
                rule.register = Some(register);
                rule.offset = i64::try_from(offset).unwrap_or(i64::MAX);
            }
            CallFrameInstruction::DefCfaOffset { offset } => {
                rule.offset = i64::try_from(offset).unwrap_or(i64::MAX);
            }
            CallFrameInstruction::DefCfaRegister { register } => rule.register = Some(register),
            CallFrameInstruction::DefCfaExpression { .. }
            | CallFrameInstruction::DefCfaSf { .. }
            | CallFrameInstruction::DefCfaOffsetSf { .. } => rule.register = None,
            CallFrameInstruction::Undefined { register: RETURN_ADDRESS } => {
                rule.no_return_address = true;
            }
            CallFrameInstruction::Offset { register, .. }
            | CallFrameInstruction::OffsetExtendedSf { register, .. }
            | CallFrameInstruction::Expression { register, .. } => {
                rule.has_saved |= register != RETURN_ADDRESS;
            }
            _ => {}
        }
    }
    rule
}
