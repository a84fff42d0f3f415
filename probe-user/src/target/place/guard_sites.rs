//! Collects the guard sites of an object: the entries of functions, and instructions that switch
//! stacks.

use super::super::plan::GuardKind;
use super::code::CodeMap;
use super::cost::cost;
use super::entry;
use super::extent::Mark;
use super::flow::{self, Flow};
use super::frames::Start;
use super::functions::{Extent, Found, Functions};
use super::jumps;
use super::names::{Definition, Names};
use super::stacks::LONGEST_INSTRUCTION;
use super::unguardable::Unguardable;
use iced_x86::{Decoder, DecoderOptions};
use std::collections::BTreeMap;

/// Limit of the places to guard in one object.
pub(super) const MOST: usize = 4096;

/// The sites found so far, by file offset.
#[derive(Default)]
pub(super) struct Sites(pub(super) BTreeMap<u64, GuardKind>);

impl Sites {
    fn add(&mut self, offset: u64, kind: GuardKind) -> Result<(), Unguardable> {
        self.0.entry(offset).or_insert(kind);
        if self.0.len() > MOST { Err(Unguardable::TooMany) } else { Ok(()) }
    }

    pub(super) fn add_function(
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
        let site = entry::entry_site(start, map, &flow)
            .map_err(|why| Unguardable::Function { name: definition.name.into(), why })?;
        self.add(site.offset, kind)
    }

    /// Adds the instructions that switch stacks. Returns the address of the first.
    pub(super) fn add_switches(
        &mut self,
        map: &CodeMap<'_>,
        functions: &Functions<'_, '_>,
        candidates: &[u64],
    ) -> Result<Option<u64>, Unguardable> {
        let mut first = None;
        let mut last: Option<(Extent, Flow)> = None;
        for &candidate in candidates {
            map.budget().check()?;
            let (address, function) = match functions.find(candidate) {
                Found::Nothing => continue,
                Found::Unclear => return Err(Unguardable::Unclear(candidate)),
                Found::Instruction { address, function } => (address, function),
            };
            let known = last.take().filter(|(known, _)| *known == function);
            let (_, flow) = last.insert(known.unwrap_or_else(|| (function, follow(map, function))));
            let frame = map.frame(function.start);
            match flow.extent.mark(address) {
                // The bytes are a part of another instruction.
                Some(Mark::Inside) => continue,
                // A probe on data would change them.
                Some(Mark::Unknown) | None if frame.is_none() => {
                    return Err(Unguardable::Unclear(address));
                }
                _ => {}
            }
            self.add_instruction(map, address)?;
            // Some copy their stack away before they leave it (greenlet). The copy must not contain
            // a trampoline either, so the guard comes first thing in the function.
            if frame.is_none_or(|frame| frame.first == Start::Function)
                && let Ok(site) = entry::entry_site(function.start, map, flow)
            {
                self.add(site.offset, GuardKind::Switch)?;
            }
            first = first.or(Some(address));
        }
        Ok(first)
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
    pub(super) fn add_jumps(
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

fn follow(map: &CodeMap<'_>, function: Extent) -> Flow {
    let frame = map.frame(function.start).filter(|frame| frame.start == function.start);
    let end = frame.map_or(function.end, |frame| frame.end);
    flow::follow(map, function.start, end, frame)
}
