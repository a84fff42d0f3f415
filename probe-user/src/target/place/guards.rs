//! Finds the places of an object where return probes begin to be dangerous.
//!
//! A return probe puts the address of the kernel's trampoline on the stack. That is deadly only
//! when something unwinds through the frame or leaves the stack. A guard at each place where that
//! begins puts the true addresses back. All such places must be known: an object that may have
//! others cannot be guarded, and its process gets no return probes by this rule.

use super::super::budget::TooLarge;
use super::super::elf::{self, Layout, Segment};
use super::super::object::Object;
use super::super::plan::{GuardKind, GuardSite};
use super::super::tables::NamedSymbols;
use super::code::{CodeMap, PlaceError};
use super::cost::cost;
use super::deny::Refusal;
use super::entry;
use super::extent::Mark;
use super::flow::{self, Flow};
use super::frames::Start;
use super::functions::{Extent, Found, Functions};
use super::names::{Definition, Names};
use super::stacks::{self, LONGEST_INSTRUCTION, Place, StackSwitch, Unsearched};
use super::{jumps, runtimes};
use iced_x86::{Decoder, DecoderOptions};
use std::collections::BTreeMap;
use std::fmt;

/// The places to guard in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// Sorted by offset, each once.
    pub sites: Vec<GuardSite>,
    /// How it switches stacks, if it does.
    pub switch: Option<StackSwitch>,
}

/// The reason why an object cannot be guarded. It reads as what follows the object's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unguardable {
    /// A runtime that reads return addresses of native frames.
    Runtime(&'static str),
    /// It contains an unwinder that no symbol shows.
    NamelessUnwinder,
    /// No probe can sit on a guarded function.
    Function {
        name: Box<str>,
        why: Refusal,
    },
    /// No probe can sit on an instruction that switches stacks.
    Instruction {
        address: u64,
        why: &'static str,
    },
    /// The bytes at this address may be a switch, or a part of something else.
    Unclear(u64),
    /// It jumps to other stacks with this function, in a way that cannot be guarded.
    Jump {
        name: Box<str>,
        why: &'static str,
    },
    TooMany,
    Unsearched(Unsearched),
    /// Its code cannot be read.
    Code(PlaceError),
}

impl fmt::Display for Unguardable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(runtime) => write!(out, "walks its own stacks ({runtime})"),
            Self::NamelessUnwinder => out.write_str("contains an unwinder that no symbol shows"),
            Self::Function { name, why } => {
                write!(out, "has no place for a guard in {name}: {why}")
            }
            Self::Instruction { address, why } => {
                write!(out, "switches stacks at {address:#x}, where no guard can be: {why}")
            }
            Self::Unclear(address) => {
                write!(out, "may switch stacks at {address:#x}, which is not clearly code")
            }
            Self::Jump { name, why } => {
                write!(out, "changes stacks with {name}, which cannot be guarded: {why}")
            }
            Self::TooMany => write!(out, "has more than {MOST} places to guard"),
            Self::Unsearched(why) => why.fmt(out),
            Self::Code(why) => write!(out, "cannot be searched for stack switches: {why}"),
        }
    }
}

impl From<TooLarge> for Unguardable {
    fn from(why: TooLarge) -> Self {
        Self::Unsearched(why.into())
    }
}

impl From<Unsearched> for Unguardable {
    fn from(why: Unsearched) -> Self {
        Self::Unsearched(why)
    }
}

/// Limit of the places to guard in one object.
const MOST: usize = 4096;

/// Returns the places to guard in an object.
pub fn guards(object: &Object) -> Result<Guards, Unguardable> {
    let budget = object.source().budget();
    let _look = budget.look();
    match budget.watch(|| look(object)) {
        // A refused read proves nothing.
        (Ok(_), Some(why)) => Err(why.into()),
        (found, _) => found,
    }
}

fn look(object: &Object) -> Result<Guards, Unguardable> {
    if object.is_go() {
        return Err(Unguardable::Runtime("Go"));
    }
    if let Some(runtime) = runtimes::in_file(object.name()) {
        return Err(Unguardable::Runtime(runtime));
    }
    let source = object.source();
    let file = elf::parse(source).map_err(|why| Unguardable::Code(PlaceError::NotElf(why)))?;
    let (all, dynamic) = (NamedSymbols::all(source, &file), NamedSymbols::dynamic(source, &file));
    let names = Names::read(all, dynamic, source.budget())?;
    if let Some(runtime) = names.runtime {
        return Err(Unguardable::Runtime(runtime));
    }
    if has_nameless_unwinder(object, &names) {
        return Err(Unguardable::NamelessUnwinder);
    }
    let segments: Vec<Place> = code_segments(object.layout());
    let code = stacks::code(&file, source, &segments)?;
    let candidates = match is_searched(object, &names) {
        true => stacks::candidates(source, &code)?,
        false => Vec::new(),
    };
    let is_plain = names.guarded.is_empty() && names.switch.is_none() && candidates.is_empty();
    if is_plain && !names.is_static {
        return Ok(Guards::default());
    }
    let map = CodeMap::parse(source).map_err(Unguardable::Code)?;
    if names.is_static && map.has_unwinder() && !names.defines_unwinder() {
        return Err(Unguardable::NamelessUnwinder);
    }
    let mut sites = Sites::default();
    for (definition, kind) in &names.guarded {
        sites.add_function(&map, definition, *kind)?;
    }
    let functions = Functions::read(source, [all, dynamic], &code, map.frames())?;
    let first = sites.add_switches(&map, &functions, &candidates)?;
    let switch = names.switch.map(StackSwitch::Uses).or(first.map(StackSwitch::At));
    if switch.is_some() {
        sites.add_jumps(&map, &names)?;
    }
    let sites = sites.0.into_iter().map(|(offset, kind)| GuardSite { offset, kind });
    Ok(Guards { sites: sites.collect(), switch })
}

fn code_segments(layout: &Layout) -> Vec<Place> {
    let code = layout.segments.iter().filter(|segment| segment.executable);
    let place = |segment: &Segment| {
        let end = segment.offset.saturating_add(segment.file_size);
        (segment.addresses.start, segment.offset..end)
    };
    code.map(place).collect()
}

/// Returns whether the object contains an unwinder that no symbol shows. One that imports its
/// unwinder has no copy of it.
fn has_nameless_unwinder(object: &Object, names: &Names<'_>) -> bool {
    if object.unwinder().is_none() || names.defines_unwinder() || names.imports_unwinder {
        return false;
    }
    let finds_tables = object.is_stripped() && names.imports_table_finder;
    finds_tables || !(names.imports_thrower || names.is_known)
}

/// Returns whether the object's instructions may switch stacks. The C library and the dynamic
/// linker contain the tools for it, which are known by name; libffi moves within the same stack;
/// unwinders leave the stack only after they are guarded.
fn is_searched(object: &Object, names: &Names<'_>) -> bool {
    let is_unwinder = ["libgcc_s.so", "libunwind"].iter().any(|it| object.name().starts_with(it));
    !names.is_known && !(names.exports_unwinder && is_unwinder)
}

/// The sites found so far, by file offset.
#[derive(Default)]
struct Sites(BTreeMap<u64, GuardKind>);

impl Sites {
    fn add(&mut self, offset: u64, kind: GuardKind) -> Result<(), Unguardable> {
        self.0.entry(offset).or_insert(kind);
        if self.0.len() > MOST { Err(Unguardable::TooMany) } else { Ok(()) }
    }

    fn add_function(
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
    fn add_switches(
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
    fn add_jumps(&mut self, map: &CodeMap<'_>, names: &Names<'_>) -> Result<(), Unguardable> {
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
