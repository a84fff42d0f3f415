//! Decides where the probes of a function may sit, so that a target never dies and never computes
//! anything else because ctrace watches it.
//!
//! This module turns bytes into decisions by the rules in docs/placement.md. Every decision about
//! safety is made here, before anything is attached.

mod calls;
mod code;
mod cost;
mod deny;
mod entry;
mod exits;
mod explain;
mod go;
mod goroutine_ids;
mod guards;
pub(super) mod near_jumps;
pub(super) mod nops;
mod probed;
mod same_frame;

pub(crate) use calls::{CodeCalls, calls};
pub use code::CodeMap;
pub use code::stacks::StackSwitch;
pub use deny::Refusal;
pub use explain::explain;
pub(crate) use goroutine_ids::goid_place;
pub(crate) use guards::runtime;
pub use guards::unguardable::Unguardable;
pub use guards::{Guards, guards};
pub(crate) use nops::usdt_site;
pub(crate) use probed::may_be_probed;
pub(crate) use same_frame::Frames;

use super::elf::frames::{FrameEntry, Start};
use super::names::by_address;
use super::plan::{EntrySite, ExitPlacement, Placement};
use code::flow::{self, Flow, Way};
use ctrace_common::GoidPlace;
use entry::Passes;

/// The user's choice of how the ends of calls are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Returns {
    #[default]
    Auto,
    /// Return probes wherever they do not kill.
    ReturnProbe,
    RetSites,
}

/// The rules for the process, the host and the user's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub returns: Returns,
    /// True if the process has an unwinder: unwinding through a return probe would end it.
    pub unwinding_possible: bool,
    /// Where goroutines have their ids, if the object is of Go.
    pub go: Option<GoidPlace>,
    /// True if an object of the process switches stacks ([`CodeMap::stack_switch`]).
    pub switches_stacks: bool,
    /// True if all guard sites of the process are known and guarded. Then neither unwinding nor
    /// switched stacks forbid a return probe.
    pub guarded: bool,
}

/// A function to trace, as its symbol describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'name> {
    pub address: u64,
    /// In bytes. 0 where the symbol does not say.
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
    place_for(candidate, map, policy, false)
}

/// Decides where the probes of one function go. A probe that reads arguments is where they still are as
/// the caller left them.
pub fn place_for(
    candidate: Candidate<'_>,
    map: &CodeMap<'_>,
    policy: &Policy,
    reads_arguments: bool,
) -> Result<Placement, Refusal> {
    let _look = map.budget().look();
    map.budget().check().map_err(Refusal::TooLarge)?;
    let (end, frame) = extent(candidate, map)?;
    let flow = flow::follow(map, candidate.address, end, frame);
    if flow.broken_at_entry {
        return Err(Refusal::NotInstructions);
    }
    let behind_check = entry::behind_stack_check(candidate.address, map, &flow);
    let entry_is_loop_head = behind_check.is_none() && flow.targets.contains(&candidate.address);
    let may_tail_jump = flow.ways_out.iter().any(|(_, way)| *way != Way::Ret);
    let no_return_probe = no_return_probe(candidate, map, policy, &flow, frame);
    let by_return_probe = no_return_probe.is_none() && allows_return_probes(map, policy);
    let passes = match reads_arguments {
        true => Passes::Arguments,
        false => Passes::Quick { to_jump_out: by_return_probe },
    };
    let entry = match behind_check {
        Some(entry) => entry,
        None => entry::entry_site(candidate.address, map, &flow, passes)?,
    };
    let exit = exit(candidate, map, policy, &flow, &entry, by_return_probe);
    let go = policy.go.or(map.is_go().then_some(GoidPlace::UNKNOWN));
    Ok(Placement { entry, exit, entry_is_loop_head, may_tail_jump, go, no_return_probe })
}

/// Returns the function's end, and its unwind entry if it has one.
fn extent<'map>(
    candidate: Candidate<'_>,
    map: &'map CodeMap<'_>,
) -> Result<(u64, Option<&'map FrameEntry>), Refusal> {
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

fn exit(
    candidate: Candidate<'_>,
    map: &CodeMap<'_>,
    policy: &Policy,
    flow: &Flow,
    entry: &EntrySite,
    by_return_probe: bool,
) -> ExitPlacement {
    if by_return_probe && !policy.guarded {
        return ExitPlacement::ReturnProbe;
    }
    if (policy.go.is_some() || map.is_go()) && go::loses_goroutine(&flow.instructions) {
        return ExitPlacement::Unseen("it uses the register of the goroutine".into());
    }
    match exits::exit_sites(map, flow, candidate.address, entry) {
        sites if by_return_probe => ExitPlacement::Guarded(sites),
        Ok(sites) => ExitPlacement::Sites(sites),
        Err(why) => ExitPlacement::Unseen(why),
    }
}

/// Returns whether the process bears return probes. The reasons against them, with their objects, are
/// found for the whole process (`session/plan/guarding.rs`).
fn allows_return_probes(map: &CodeMap<'_>, policy: &Policy) -> bool {
    let unwinds = policy.returns == Returns::Auto && policy.unwinding_possible;
    let wanted = policy.returns != Returns::RetSites;
    wanted && (policy.guarded || !(unwinds || policy.switches_stacks || map.switches_stacks()))
}

/// Returns why a return probe on this function would change the target's behaviour. A guard does
/// not help: it may run before the function's own address is replaced.
fn no_return_probe(
    candidate: Candidate<'_>,
    map: &CodeMap<'_>,
    policy: &Policy,
    flow: &Flow,
    frame: Option<&FrameEntry>,
) -> Option<&'static str> {
    if policy.go.is_some() || map.is_go() {
        return Some("Go moves its stacks");
    }
    if policy.guarded && flow.instructions.iter().any(code::stacks::leaves_stack) {
        return Some("it switches stacks");
    }
    if frame.is_none() {
        return Some("nothing shows that it is entered by calls");
    }
    if flow.touches_return_address {
        return Some("it reads its return address");
    }
    if map.may_contain_libraries() && by_address::is_name(candidate.name, candidate.address) {
        // It may be libc's `setjmp`, or an unwinder's.
        return Some("it has no name, which would tell whether it keeps its return address");
    }
    deny::keeps_return_address(candidate.name).or_else(|| {
        // A function that ends in a jump to one of those passes its return address on.
        let jumps = flow.ways_out.iter().filter_map(|(_, way)| match way {
            Way::Jump(Some(target)) => map.import_behind(*target),
            _ => None,
        });
        jumps.filter_map(deny::keeps_return_address).next()
    })
}
