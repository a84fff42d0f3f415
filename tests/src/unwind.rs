//! Finds the return addresses of live calls on the stack of a thread that is held.
//!
//! Words of calls that are over remain on stacks, also where no live call has overwritten them. So
//! only the unwind tables tell which words a call will return by.

use crate::maps::{self, Mapping};
use anyhow::{Context, Result};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, Encoding, EndianSlice, EvaluationResult, Expression, Format,
    LittleEndian, Location, RegisterRule, UnwindContext, UnwindSection, Value, X86_64,
};
use object::{Object, ObjectSection, ObjectSegment};
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The registers of a thread, by their numbers in DWARF. The last is the instruction pointer.
pub type Registers = [u64; 17];

const RSP: usize = X86_64::RSP.0 as usize;
const RIP: usize = X86_64::RA.0 as usize;
/// More frames than a target of ours has.
const MOST_FRAMES: usize = 1000;
const ENCODING: Encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 8 };

/// The code and the memory of a process.
pub struct Unwinder {
    /// The mappings of code of files.
    code: Vec<Mapping>,
    files: HashMap<String, Vec<u8>>,
    memory: File,
}

/// A step from a call to its caller.
struct Step {
    /// The place of the return address.
    slot: u64,
    caller: Registers,
    is_signal: bool,
}

impl Unwinder {
    pub fn new(pid: i32) -> Result<Unwinder> {
        let mut code = maps::of(pid)?;
        // A file that is gone has no frames here.
        code.retain(|code| code.is_code() && code.path.starts_with('/') && !code.is_gone);
        let read = |code: &Mapping| Some((code.path.clone(), fs::read(&code.path).ok()?));
        let files = code.iter().filter_map(read).collect();
        Ok(Unwinder { code, files, memory: File::open(format!("/proc/{pid}/mem"))? })
    }

    pub fn word(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, address).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Returns the places of all return addresses, from the innermost call to the first that no
    /// table describes.
    pub fn return_slots(&self, registers: &Registers) -> Vec<u64> {
        let (mut registers, mut is_exact, mut slots) = (*registers, true, Vec::new());
        while slots.len() < MOST_FRAMES
            && let Ok(step) = self.step(&registers, is_exact)
        {
            slots.push(step.slot);
            (registers, is_exact) = (step.caller, step.is_signal);
        }
        slots
    }

    /// Goes from a call to its caller. `is_exact`: the instruction pointer is not a return address,
    /// which may be that of the next function.
    fn step(&self, registers: &Registers, is_exact: bool) -> Result<Step> {
        let at = registers[RIP] - u64::from(!is_exact);
        let code = self.code.iter().find(|code| (code.start..code.end).contains(&at));
        let code = code.context("no code of a file")?;
        let file = self.files.get(&code.path).context("no file")?;
        let file = object::File::parse(file.as_slice())?;
        let address = address_in(&file, at - code.start + code.offset).context("no segment")?;
        let bias = at.wrapping_sub(address);
        let section = file.section_by_name(".eh_frame").context("no table")?;
        let table = EhFrame::new(section.data()?, LittleEndian);
        let text = file.section_by_name(".text").map_or(0, |text| text.address());
        let bases = BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
        let entry = table.fde_for_address(&bases, address, EhFrame::cie_from_offset)?;
        let mut context = UnwindContext::new();
        let row = entry.unwind_info_for_address(&table, &bases, &mut context, address)?;
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                register_of(registers, register.0)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(expression) => {
                self.evaluate(expression.get(&table)?, registers, None, bias)?
            }
        };
        let (mut caller, mut slot) = (*registers, None);
        caller[RSP] = cfa;
        for (register, rule) in row.registers() {
            let Some(value) = caller.get_mut(usize::from(register.0)) else { continue };
            let place = match rule {
                RegisterRule::Offset(offset) => cfa.wrapping_add_signed(*offset),
                RegisterRule::Expression(expression) => {
                    self.evaluate(expression.get(&table)?, registers, Some(cfa), bias)?
                }
                // The outermost call has no return address.
                _ => continue,
            };
            *value = self.word(place).context("no memory")?;
            if register == &X86_64::RA {
                slot = Some(place);
            }
        }
        let slot = slot.context("the outermost call")?;
        Ok(Step { slot, caller, is_signal: entry.is_signal_trampoline() })
    }

    fn evaluate(
        &self,
        expression: Expression<Slice<'_>>,
        registers: &Registers,
        initial: Option<u64>,
        bias: u64,
    ) -> Result<u64> {
        let mut evaluation = expression.evaluation(ENCODING);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate()?;
        while result != EvaluationResult::Complete {
            result = match result {
                EvaluationResult::RequiresMemory { address, .. } => evaluation
                    .resume_with_memory(Value::Generic(self.word(address).context("no memory")?))?,
                EvaluationResult::RequiresRegister { register, .. } => evaluation
                    .resume_with_register(Value::Generic(register_of(registers, register.0)?))?,
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    evaluation.resume_with_relocated_address(address.wrapping_add(bias))?
                }
                other => anyhow::bail!("{other:?}"),
            };
        }
        match evaluation.result().first().map(|piece| &piece.location) {
            Some(Location::Address { address }) => Ok(*address),
            other => anyhow::bail!("{other:?}"),
        }
    }
}

fn register_of(registers: &Registers, number: u16) -> Result<u64> {
    registers.get(usize::from(number)).copied().context("another register")
}

/// Returns the address in the file of what is at this offset.
fn address_in(file: &object::File<'_>, offset: u64) -> Option<u64> {
    file.segments().find_map(|segment| {
        let (start, size) = segment.file_range();
        let inside = offset.checked_sub(start).filter(|inside| *inside < size)?;
        Some(segment.address() + inside)
    })
}
