//! Collects the guard sites of an object: the entries of functions, and instructions that switch
//! stacks.

use crate::target::elf::frames::Start;
use crate::target::place::code::CodeMap;
use crate::target::place::code::balance;
use crate::target::place::code::extent::Mark;
use crate::target::place::code::flow::{self, Flow};
use crate::target::place::code::functions::{Extent, Found, Functions};
use crate::target::place::code::references::{self, Reference};
use crate::target::place::code::stacks::{LONGEST_INSTRUCTION, Place};
use crate::target::place::cost::cost;
use crate::target::place::entry::{self, Passes};
use crate::target::place::guards::jumps;
use crate::target::place::guards::names::{Definition, Names};
use crate::target::place::guards::unguardable::Unguardable;
use crate::target::plan::GuardKind;
use crate::target::read::source::Source;
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use std::collections::{BTreeMap, BTreeSet};

/// Limit of the places to guard in one object.
pub(crate) const MOST: usize = 4096;

/// The sites found so far, by file offset.
#[derive(Default)]
pub(crate) struct GuardSites(pub(crate) BTreeMap<u64, GuardKind>);

impl GuardSites {
    fn add(&mut self, offset: u64, kind: GuardKind) -> Result<(), Unguardable> {
        self.0.entry(offset).or_insert(kind);
        if self.0.len() > MOST { Err(Unguardable::TooMany) } else { Ok(()) }
    }

    pub(crate) fn add_function(
        &mut self,
        map: &CodeMap<'_>,
        definition: &Definition<'_>,
        kind: GuardKind,
    ) -> Result<(), Unguardable> {
        map.budget().check()?;
        let start = definition.address;
        // The first instruction is of interest, whatever the size says.
        let size = definition.size.max(LONGEST_INSTRUCTION as u64);
        let flow = follow(map, Extent { start, end: start.saturating_add(size) });
        let site = entry::entry_site(start, map, &flow, Passes::Guard)
            .map_err(|why| Unguardable::Function { name: definition.name.into(), why })?;
        self.add(site.offset, kind)
    }

    /// Adds the instructions that switch stacks. Returns the address of the first, and the
    /// candidates that are in no known function.
    pub(crate) fn add_switches(
        &mut self,
        map: &CodeMap<'_>,
        functions: &Functions<'_, '_>,
        candidates: &[u64],
    ) -> Result<(Option<u64>, Vec<u64>), Unguardable> {
        let (mut first, mut nowhere) = (None, Vec::new());
        let mut last: Option<(Extent, Flow)> = None;
        for &candidate in candidates {
            map.budget().check()?;
            let (address, function, is_far) = match functions.find(candidate) {
                Found::Nothing => continue,
                Found::Far(function) => (candidate, function, true),
                Found::Nowhere => {
                    nowhere.push(candidate);
                    continue;
                }
                Found::Instruction { address, function } => (address, function, false),
            };
            let known = last.take().filter(|(known, _)| *known == function);
            let (_, flow) = last.insert(known.unwrap_or_else(|| (function, follow(map, function))));
            let frame = map.frame(function.start);
            match flow.extent.mark(address) {
                // The bytes are a part of another instruction.
                Some(Mark::Inside) => continue,
                // A probe on data would change them.
                Some(Mark::Unknown) | None if frame.is_none() || is_far => {
                    return Err(Unguardable::Unclear(address));
                }
                _ => {}
            }
            if balance::is_undone(flow, address) {
                continue;
            }
            self.add_instruction(map, address)?;
            // Some copy their stack away before they leave it (greenlet). The copy must not contain
            // a trampoline either, so the guard comes first thing in the function.
            if frame.is_none_or(|frame| frame.first == Start::Function)
                && let Ok(site) = entry::entry_site(function.start, map, flow, Passes::Guard)
            {
                self.add(site.offset, GuardKind::Switch)?;
            }
            first = first.or(Some(address));
        }
        Ok((first, nowhere))
    }

    /// Adds those of the candidates in no known function that are code. Returns the first.
    pub(crate) fn add_lost(
        &mut self,
        map: &CodeMap<'_>,
        functions: &Functions<'_, '_>,
        source: &Source,
        segments: &[Place],
        candidates: &[u64],
    ) -> Result<Option<u64>, Unguardable> {
        let mut gaps: Vec<_> = candidates.iter().filter_map(|at| functions.gap(*at)).collect();
        gaps.dedup();
        if gaps.is_empty() {
            return Ok(None);
        }
        let is_sure = |it: &Reference| it.from.is_some_and(|from| is_branch(map, functions, from));
        let references = references::into_gaps(source, segments, &gaps)?;
        // Other references may be there by chance, or lead to data.
        let (sure, unsure): (Vec<_>, Vec<_>) = references.into_iter().partition(is_sure);
        let (addresses, relative): (Vec<_>, Vec<_>) =
            unsure.into_iter().partition(|it| it.from.is_none());
        let mut code = BTreeSet::new();
        let mut seen = Seen::default();
        let unsure = addresses.iter().chain(&relative).map(|it| (it, false));
        for (reference, is_sure) in sure.iter().map(|it| (it, true)).chain(unsure) {
            map.budget().check()?;
            if seen.explains(reference) {
                continue;
            }
            let target = reference.target;
            let inside = |gap: &&Extent| (gap.start..gap.end).contains(&target);
            let Some(gap) = gaps.iter().find(inside) else { continue };
            let ahead = candidates.iter().filter(|at| (target..gap.end).contains(*at));
            let mut ahead = ahead.filter(|at| !code.contains(*at)).peekable();
            if ahead.peek().is_none() {
                continue;
            }
            let flow = follow(map, Extent { start: target, end: gap.end });
            if flow.trouble.is_none() {
                seen.add(&flow);
            }
            let reached = ahead.copied();
            let reached = reached.filter(|at| flow.extent.mark(*at) == Some(Mark::Instruction));
            let (undone, reached): (Vec<u64>, Vec<u64>) =
                reached.partition(|at| balance::is_undone(&flow, *at));
            if !is_sure && let Some(address) = reached.first() {
                return Err(Unguardable::Unclear(*address));
            }
            for &address in &reached {
                self.add_instruction(map, address)?;
                if let Ok(site) = entry::entry_site(target, map, &flow, Passes::Guard) {
                    self.add(site.offset, GuardKind::Switch)?;
                }
            }
            code.extend(reached);
            if !undone.is_empty() {
                seen.framed.push(flow);
            }
        }
        Ok(code.first().copied())
    }

    fn add_instruction(&mut self, map: &CodeMap<'_>, address: u64) -> Result<(), Unguardable> {
        let refused = |why| Unguardable::Instruction { address, why };
        let (Some(bytes), Some(offset)) = (map.bytes(address), map.file_offset(address)) else {
            return Err(refused("it is not loaded"));
        };
        let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
        cost(bytes, &instruction).map_err(refused)?;
        self.add(offset, GuardKind::Switch)
    }

    /// Adds what jumps to other stacks in an object that makes some.
    pub(crate) fn add_jumps(
        &mut self,
        map: &CodeMap<'_>,
        names: &Names<'_>,
    ) -> Result<(), Unguardable> {
        if names.is_static {
            return names
                .jumps
                .iter()
                .try_for_each(|jump| self.add_function(map, jump, GuardKind::Switch));
        }
        for name in &names.imported_jumps {
            let refused = |why| Unguardable::Jump { name: (*name).into(), why };
            let mut stubs = jumps::stubs(map, name).peekable();
            if stubs.peek().is_none() {
                return Err(refused("it is called without a stub"));
            }
            for stub in stubs {
                self.add(stub.map_err(refused)?, GuardKind::Switch)?;
            }
        }
        Ok(())
    }
}

/// Code that was followed completely.
#[derive(Default)]
struct Seen {
    instructions: BTreeMap<u64, Instruction>,
    /// Functions that surely are some: they make a frame, and give it back.
    framed: Vec<Flow>,
}

impl Seen {
    fn add(&mut self, flow: &Flow) {
        self.instructions.extend(flow.instructions.iter().map(|it| (it.ip(), *it)));
    }

    /// Returns whether a reference leads nowhere else: to an instruction that is known, or by bytes in
    /// the middle of one that leads elsewhere, such as a small number. Any four bytes may lead into the
    /// middle of a large function. Who jumps there from outside is found where it begins.
    fn explains(&self, reference: &Reference) -> bool {
        let is_number = |from: u64| {
            let around = self.instructions.range(..from).next_back().map(|(_, it)| it);
            around.filter(|it| from < it.next_ip()).is_some_and(|it| {
                let is_branch = it.op0_kind() == OpKind::NearBranch64
                    && it.near_branch_target() == reference.target;
                let is_operand =
                    it.is_ip_rel_memory_operand() && it.ip_rel_memory_address() == reference.target;
                !is_branch && !is_operand
            })
        };
        let is_within = |flow: &Flow| {
            matches!(flow.extent.mark(reference.target), Some(Mark::Instruction | Mark::Inside))
        };
        self.instructions.contains_key(&reference.target)
            || self.framed.iter().any(is_within)
            || reference.from.is_some_and(is_number)
    }
}

fn follow(map: &CodeMap<'_>, function: Extent) -> Flow {
    let frame = map.frame(function.start).filter(|frame| frame.start == function.start);
    let end = frame.map_or(function.end, |frame| frame.end);
    flow::follow(map, function.start, end, frame)
}

/// Returns whether the four bytes at an address are the target of a call or a jump in a known
/// function.
fn is_branch(map: &CodeMap<'_>, functions: &Functions<'_, '_>, target: u64) -> bool {
    [1, 2].into_iter().any(|opcode| {
        let start = target.wrapping_sub(opcode);
        let Some(bytes) = map.bytes(start) else { return false };
        let branch = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).decode();
        branch.next_ip() == target.wrapping_add(4)
            && branch.op0_kind() == OpKind::NearBranch64
            && functions.has_instruction(start)
    })
}
