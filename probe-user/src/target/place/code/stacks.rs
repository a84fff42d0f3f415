//! Detects objects that switch stacks: coroutines, and signal handlers with a stack of their own.
//!
//! The kernel keeps the return addresses of return probes in one pile per thread, in the order of
//! the stack pointer. Two stacks that take turns mix it up, and the target hangs or dies. Libraries
//! that switch stacks are known by name. Other code writes the stack pointer itself: from an
//! argument, from memory, or by addition. Compilers also restore it, but only from where the same
//! function saved it: a call-preserved register or the frame.

use crate::target::elf::ElfFile;
use crate::target::elf::frames::FrameTable;
use crate::target::elf::tables::{self, NamedSymbols};
use crate::target::place::code::functions::{Found, Functions};
use crate::target::read::budget::TooLarge;
use crate::target::read::source::Source;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection, SectionFlags, elf};
use std::fmt;
use std::ops::{ControlFlow, Range};

/// Limit of places that look like a switch, and of references into all gaps. Beyond it the object counts
/// as one that switches: a hostile file must not cost us time.
pub(crate) const MOST: usize = 10_000;

/// The evidence that an object switches stacks. It reads as what follows the object's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackSwitch {
    /// It imports this function, or contains it and is static.
    Uses(&'static str),
    /// The instruction at this address sets the stack pointer.
    At(u64),
    /// Its code cannot be searched, and may do anything.
    Unsearched(Unsearched),
}

/// The reason why an object's code cannot be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsearched {
    Unreadable,
    /// Its sections of code overlap.
    Overlapping,
    TooMany,
    /// Too much refers to code of no known function.
    Tangled,
    TooLarge(TooLarge),
}

impl fmt::Display for StackSwitch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uses(name) => write!(out, "uses {name}"),
            Self::At(address) => write!(out, "may switch stacks at {address:#x}"),
            Self::Unsearched(why) => why.fmt(out),
        }
    }
}

impl fmt::Display for Unsearched {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable => out.write_str("has code that cannot be read"),
            Self::Overlapping => out.write_str("has sections of code that overlap"),
            Self::TooMany => write!(out, "may switch stacks at more than {MOST} places"),
            Self::Tangled => out.write_str("may switch stacks in code that no table describes"),
            Self::TooLarge(why) => why.fmt(out),
        }
    }
}

impl From<TooLarge> for Unsearched {
    fn from(why: TooLarge) -> Self {
        Self::TooLarge(why)
    }
}

/// Returns the name of a function that shows a switch, if the object imports it, or contains it and
/// is static.
pub(crate) fn switch(name: &str) -> Option<&'static str> {
    const SWITCHES: [&str; 9] = [
        "swapcontext",
        "setcontext",
        "makecontext",
        "jump_fcontext",
        "make_fcontext",
        "ontop_fcontext",
        "co_switch",
        "coro_transfer",
        "sigaltstack",
    ];
    let name = crate::target::place::deny::bare(name);
    SWITCHES.into_iter().find(|switch| *switch == name)
}

/// The address of code and its range in the file.
pub(crate) type Place = (u64, Range<u64>);

/// Returns how the object's code switches stacks, if it does. `segments` are those of code.
pub(crate) fn find<'data>(
    file: &ElfFile<'data>,
    source: &'data Source,
    segments: &[Place],
    frames: impl FnOnce() -> Result<FrameTable<'data>, TooLarge>,
) -> Result<Option<StackSwitch>, Unsearched> {
    let (all, dynamic) = (NamedSymbols::all(source, file), NamedSymbols::dynamic(source, file));
    let is_static = !dynamic.named().any(|(symbol, _)| tables::is_undefined(symbol));
    let used = all.named().chain(dynamic.named());
    let mut used = used.filter(|(symbol, _)| is_static || tables::is_undefined(symbol));
    if let Some(name) = used.find_map(|(_, name)| switch(name)) {
        return Ok(Some(StackSwitch::Uses(name)));
    }
    // The C library and the dynamic linker contain the tools for it; libffi moves within the same
    // stack; unwinders are known.
    const KNOWN: [&str; 4] = ["longjmp", "__tls_get_addr", "ffi_call", "_Unwind_RaiseException"];
    let mut exports = dynamic.named().filter(|(symbol, _)| tables::is_definition(symbol));
    if exports.any(|(_, name)| KNOWN.contains(&name)) {
        return Ok(None);
    }
    let code = code(file, source, segments)?;
    let places = candidates(source, &code)?;
    if places.is_empty() {
        return Ok(None);
    }
    let frames = frames()?;
    let functions = Functions::read(source, [all, dynamic], &code, &frames)?;
    for place in places {
        source.budget().check()?;
        if functions.find(place) != Found::Nothing {
            return Ok(Some(StackSwitch::At(place)));
        }
    }
    Ok(None)
}

/// Returns the sections of code, or the segments where there are none.
pub(crate) fn code(
    file: &ElfFile<'_>,
    source: &Source,
    segments: &[Place],
) -> Result<Vec<Place>, Unsearched> {
    let sections = file.sections().filter(is_code);
    let mut code: Vec<Place> = sections
        .filter_map(|section| {
            let (offset, size) = section.file_range()?;
            Some((section.address(), offset..offset.checked_add(size)?))
        })
        .filter(|(_, place)| !place.is_empty() && place.end <= source.length())
        .collect();
    if code.is_empty() {
        code = segments.to_vec();
    }
    let lengths = code.iter().map(|(_, place)| place.end - place.start);
    match lengths.fold(0, u64::saturating_add) > source.length() {
        true => Err(Unsearched::Overlapping),
        false => Ok(code),
    }
}

/// Returns the addresses of bytes that would set the stack pointer if they were an instruction.
pub(crate) fn candidates(source: &Source, code: &[Place]) -> Result<Vec<u64>, Unsearched> {
    search(source, code, LONGEST_INSTRUCTION, Unsearched::TooMany, |here, bytes, found| {
        let places = writes(bytes).map(|at| here.wrapping_add(at as u64));
        found.extend(places.take(MOST + 1));
    })
}

/// Returns what `find` adds for the bytes at each place, from their address on, in order and each once.
/// Chunks overlap by `overlap` bytes. Beyond the limit the search ends with `too_many`; `find` need add
/// no more than one beyond it.
pub(crate) fn search<T: Ord>(
    source: &Source,
    places: &[Place],
    overlap: usize,
    too_many: Unsearched,
    find: impl Fn(u64, &[u8], &mut Vec<T>),
) -> Result<Vec<T>, Unsearched> {
    let mut found = Vec::new();
    for (address, place) in places {
        let visit = |start: u64, bytes: &[u8]| {
            find(address.wrapping_add(start), bytes, &mut found);
            if found.len() > MOST { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let read = source.scan(place.clone(), overlap, visit);
        source.budget().check()?;
        if read.is_err() {
            return Err(Unsearched::Unreadable);
        }
        if found.len() > MOST {
            return Err(too_many);
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

pub(crate) const LONGEST_INSTRUCTION: usize = 15;

fn is_code<'data>(section: &impl ObjectSection<'data>) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return false };
    let is_stub = section.name().is_ok_and(|name| name.starts_with(".plt"));
    sh_flags.0 & elf::SHF_EXECINSTR.0 != 0 && !is_stub
}

/// Finds instructions that set the stack pointer, decoding from each byte.
fn writes(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let looks_like_one = |(at, three): (usize, &[u8])| {
        let &[rex, opcode, operands] = three else { return None };
        if rex & 0xf8 != 0x48 {
            return None;
        }
        let (is_register, reg, rm) = (operands >> 6 == 3, operands >> 3 & 7, operands & 7);
        let to_reg = reg == 4 && rex & 4 == 0;
        let to_rm = is_register && rm == 4 && rex & 1 == 0;
        let fits = match opcode {
            0x8b => to_reg,
            0x89 | 0x01 => to_rm,
            0x03 => to_reg && is_register,
            0x87 => to_reg || to_rm,
            _ => false,
        };
        fits.then_some(at)
    };
    let candidates = bytes.windows(3).enumerate().filter_map(looks_like_one);
    candidates.filter(|at| {
        let mut decoder = Decoder::new(64, &bytes[*at..], DecoderOptions::NONE);
        decoder.iter().next().is_some_and(|instruction| leaves_stack(&instruction))
    })
}

/// Returns whether the instruction sets the stack pointer to something that is not of its function.
pub(crate) fn leaves_stack(instruction: &Instruction) -> bool {
    use Register::{R8, R9, RAX, RBP, RCX, RDI, RDX, RSI, RSP};
    let sets = instruction.op0_register() == RSP;
    if instruction.mnemonic() == Mnemonic::Xchg {
        return sets || instruction.op1_register() == RSP;
    }
    let adds_memory = instruction.op1_kind() == OpKind::Memory;
    match instruction.code() {
        Code::Add_rm64_r64 => sets,
        Code::Add_r64_rm64 => sets && !adds_memory,
        Code::Mov_r64_rm64 if adds_memory => {
            sets && !matches!(instruction.memory_base(), RSP | RBP)
        }
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => {
            let from = instruction.op1_register();
            sets && matches!(from, RAX | RCX | RDX | RSI | RDI | R8 | R9)
        }
        _ => false,
    }
}
