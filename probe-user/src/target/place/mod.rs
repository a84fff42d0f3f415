//! Decides where the probes of a function may sit, so that a target never dies and never computes
//! anything else because ctrace watched it.
//!
//! Bytes in, decisions out; the rules are in docs/placement.md. Every decision about safety is
//! made here, before anything is attached.

mod code;
mod cost;
mod deny;
mod exits;
mod explain;
mod extent;
mod flow;
mod frames;
mod landing;
mod slot;
mod switches;

pub use code::{CodeMap, PlaceError};
pub use deny::Refusal;
pub use explain::explain;

use super::plan::{CostClass, EntrySite, ExitPlacement, Placement};
use flow::{Flow, Way};
use frames::{Frame, Start};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

/// How the user wants the ends of calls to be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Returns {
    #[default]
    Auto,
    /// Return probes wherever they do not kill.
    ReturnProbe,
    RetSites,
}

/// What holds for the process, the host and the user's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub returns: Returns,
    /// The process has an unwinder: an exception or a panic through a return probe would end it.
    pub unwinding_possible: bool,
    /// The kernel rewrites probed 5-byte nops into calls.
    pub nop5_optimised: bool,
    pub is_go: bool,
}

/// A function to trace, as its symbol describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'name> {
    pub address: u64,
    /// 0 where the symbol does not tell.
    pub size: u64,
    /// As in the symbol table, not demangled.
    pub name: &'name str,
}

/// Decides where the probes of one function go.
pub fn place(
    candidate: Candidate<'_>,
    map: &CodeMap<'_>,
    policy: &Policy,
) -> Result<Placement, Refusal> {
    let (end, frame) = extent(candidate, map)?;
    let flow = flow::follow(map, candidate.address, end, frame);
    if flow.broken_at_entry {
        return Err(Refusal::NotInstructions);
    }
    let is_loop_head = flow.targets.contains(&candidate.address);
    let entry = entry_site(candidate.address, map, &flow, policy, is_loop_head)?;
    let may_tail_jump = flow.ways_out.iter().any(|(_, way)| *way != Way::Ret);
    let exit = exit(candidate, map, policy, &flow, frame, &entry);
    Ok(Placement { entry, exit, entry_is_loop_head: is_loop_head, may_tail_jump })
}

/// Where the function ends, and its unwind entry if it has one.
fn extent<'map>(
    candidate: Candidate<'_>,
    map: &'map CodeMap<'_>,
) -> Result<(u64, Option<&'map Frame>), Refusal> {
    let address = candidate.address;
    if let Some(refusal) = deny::refused_by_name(candidate.name) {
        return Err(refusal);
    }
    if map.is_stub(address) {
        return Err(Refusal::LinkerStub);
    }
    if !map.is_code(address) || map.file_offset(address).is_none() {
        return Err(Refusal::NotCode);
    }
    if let Some(frame) = map.frame(address) {
        if frame.start != address {
            return Err(Refusal::InsideAnother);
        }
        return match frame.first {
            Start::Function => Ok((frame.end, Some(frame))),
            Start::Part => Err(Refusal::Part),
            Start::Outermost => Err(Refusal::NoCaller),
            Start::Signal => Err(Refusal::SignalReturn),
        };
    }
    if candidate.size == 0 {
        return Err(Refusal::NoSize);
    }
    if map.symbol_around(address).is_some() {
        return Err(Refusal::InsideAnother);
    }
    Ok((address.saturating_add(candidate.size), None))
}

fn entry_site(
    address: u64,
    map: &CodeMap<'_>,
    flow: &Flow,
    policy: &Policy,
    is_loop_head: bool,
) -> Result<EntrySite, Refusal> {
    let at = |skipped: u8| {
        let address = address + u64::from(skipped);
        let bytes = map.bytes(address).ok_or(Refusal::NotCode)?;
        let instruction = decode(bytes, address);
        let cost = cost::cost(bytes, &instruction, policy.nop5_optimised)
            .map_err(Refusal::FirstInstruction)?;
        // The rewritten call writes below the stack pointer, where a loop may keep its variables.
        if cost == CostClass::Optimised && (is_loop_head || flow.targets_unknown) {
            return Err(Refusal::FirstInstruction(
                "the kernel's rewritten nop could harm the loop",
            ));
        }
        let offset = map.file_offset(address).ok_or(Refusal::NotCode)?;
        Ok((EntrySite { offset, cost, skipped }, instruction))
    };
    let (first, instruction) = at(0)?;
    let next = address + 4;
    let may_skip = instruction.mnemonic() == Mnemonic::Endbr64
        && !flow.targets.contains(&next)
        && !flow.targets_unknown
        && flow.extent.mark(next) == Some(extent::Mark::Instruction)
        && !flow.ways_out.iter().any(|(way, _)| way.ip() == next);
    if may_skip
        && let Ok((second, _)) = at(4)
        && second.cost < first.cost
    {
        return Ok(second);
    }
    Ok(first)
}

fn decode(bytes: &[u8], address: u64) -> Instruction {
    let bytes = &bytes[..bytes.len().min(15)];
    Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode()
}

fn exit(
    candidate: Candidate<'_>,
    map: &CodeMap<'_>,
    policy: &Policy,
    flow: &Flow,
    frame: Option<&Frame>,
    entry: &EntrySite,
) -> ExitPlacement {
    let wanted = match policy.returns {
        Returns::Auto => !policy.unwinding_possible,
        Returns::ReturnProbe => true,
        Returns::RetSites => false,
    };
    if wanted && no_return_probe(candidate, map, policy, flow, frame).is_none() {
        return ExitPlacement::ReturnProbe;
    }
    let entry_address = candidate.address + u64::from(entry.skipped);
    match exits::exit_sites(map, flow, entry_address) {
        Ok(sites) => ExitPlacement::Sites(sites),
        Err(why) => ExitPlacement::Unseen(why),
    }
}

/// Why a return probe would change what the target does, apart from unwinding.
fn no_return_probe(
    candidate: Candidate<'_>,
    map: &CodeMap<'_>,
    policy: &Policy,
    flow: &Flow,
    frame: Option<&Frame>,
) -> Option<&'static str> {
    if policy.is_go || map.is_go() {
        return Some("Go moves its stacks");
    }
    if frame.is_none() {
        return Some("nothing shows that it is entered by calls");
    }
    if flow.touches_return_address {
        return Some("it reads its return address");
    }
    deny::keeps_return_address(candidate.name).or_else(|| {
        // A function that ends in a jump to one of those hands its return address on.
        let jumps = flow.ways_out.iter().filter_map(|(_, way)| match way {
            Way::Jump(Some(target)) => map.import_behind(*target),
            _ => None,
        });
        jumps.filter_map(deny::keeps_return_address).next()
    })
}
