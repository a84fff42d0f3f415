//! Finds the places of an object where return probes begin to be dangerous.
//!
//! A return probe puts the address of the kernel's trampoline on the stack. That is deadly only
//! when something unwinds through the frame or leaves the stack. A guard at each place where that
//! begins puts the true addresses back. All such places must be known: an object that may have
//! others cannot be guarded, and its process gets no return probes by this rule.

pub(crate) mod jumps;
pub(crate) mod names;
pub(crate) mod runtimes;
pub(crate) mod sites;
pub(crate) mod unguardable;

use crate::target::elf::tables::NamedSymbols;
use crate::target::elf::{self, ElfLayout, Segment};
use crate::target::object::Object;
use crate::target::place::code::functions::Functions;
use crate::target::place::code::stacks::{self, Place, StackSwitch};
use crate::target::place::code::{CodeMap, PlaceError};
use crate::target::place::guards::names::Names;
use crate::target::place::guards::runtimes::Runtime;
use crate::target::place::guards::sites::GuardSites;
use crate::target::place::guards::unguardable::Unguardable;
use crate::target::plan::{GuardKind, GuardSite};

/// The places to guard in one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// Sorted by offset, each once.
    pub sites: Vec<GuardSite>,
    /// The way in which the object switches stacks, if it does.
    pub switch: Option<StackSwitch>,
}

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

/// Returns the runtime in an object that reads return addresses of native frames, whether something
/// guards them or not. Go is none of these: its own code gets no return probes, and other code is on
/// another stack.
pub(crate) fn runtime(object: &Object) -> Option<Runtime> {
    let source = object.source();
    let _look = source.budget().look();
    let by_symbols = || {
        let file = elf::parse(source).ok()?;
        let (all, dynamic) =
            (NamedSymbols::all(source, &file), NamedSymbols::dynamic(source, &file));
        Names::read(all, dynamic, source.budget()).ok()?.runtime
    };
    runtimes::in_file(object.name()).or_else(by_symbols)
}

fn look(object: &Object) -> Result<Guards, Unguardable> {
    if object.is_go() {
        return Err(Unguardable::Runtime(Runtime::GO));
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
    let code = stacks::code(&file, source, &segments(object.layout(), |it| it.executable))?;
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
    let mut sites = GuardSites::default();
    for (definition, kind) in &names.guarded {
        match sites.add_function(&map, definition, *kind) {
            // Libraries are noticed without it as well, later.
            Err(Unguardable::Function { .. }) if *kind == GuardKind::Load => {}
            added => added?,
        }
    }
    let functions = Functions::read(source, [all, dynamic], &code, map.frames())?;
    let (first, lost) = sites.add_switches(&map, &functions, &candidates)?;
    let all = segments(object.layout(), |_| true);
    let lost = sites.add_lost(&map, &functions, source, &all, &lost)?;
    let first = first.or(lost);
    let switch = names.switch.map(StackSwitch::Uses).or(first.map(StackSwitch::At));
    if switch.is_some() {
        sites.add_jumps(&map, &names)?;
    }
    let sites = sites.0.into_iter().map(|(offset, kind)| GuardSite { offset, kind });
    Ok(Guards { sites: sites.collect(), switch })
}

fn segments(layout: &ElfLayout, wanted: impl Fn(&Segment) -> bool) -> Vec<Place> {
    let place = |segment: &Segment| {
        let end = segment.offset.saturating_add(segment.file_size);
        (segment.addresses.start, segment.offset..end)
    };
    layout.segments.iter().filter(|segment| wanted(segment)).map(place).collect()
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
    !(names.is_known || names.exports_unwinder && is_unwinder)
}
