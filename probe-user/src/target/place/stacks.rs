//! Detects objects that switch stacks: coroutines, and signal handlers with a stack of their own.
//!
//! The kernel keeps the return addresses of return probes in one pile per thread, in the order of
//! the stack pointer. Two stacks that take turns mix it up, and the target hangs or dies. Libraries
//! that switch stacks are known by name. Other code writes the stack pointer itself: from an
//! argument, from memory, or by addition. Compilers also restore it, but only from where the same
//! function saved it: a call-preserved register or the frame.

use super::super::budget::TooLarge;
use super::super::elf::ElfFile;
use super::super::source::Source;
use super::super::tables::{self, NamedSymbols};
use super::frames::FrameTable;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection, SectionFlags, elf};
use std::ops::{ControlFlow, Range};

/// Limits of the search, in bytes back to a function's begin and in places. Beyond them a match
/// counts as a switch: a hostile file must not cost us time.
const FAR: u64 = 64 << 10;
const MOST: usize = 10_000;

/// Returns whether a symbol shows a switch, if the object imports it, or contains it and is static.
pub(super) fn is_switch(name: &str) -> bool {
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
    SWITCHES.contains(&name.split_once('@').map_or(name, |(name, _)| name))
}

/// The address of code and its range in the file.
type Place = (u64, Range<u64>);

/// Returns whether the object's code switches stacks. `segments` are those of code.
pub(super) fn are_switched<'data>(
    file: &ElfFile<'data>,
    source: &'data Source,
    segments: &[Place],
    frames: impl FnOnce() -> Result<FrameTable<'data>, TooLarge>,
) -> Result<bool, TooLarge> {
    let (all, dynamic) = (NamedSymbols::all(source, file), NamedSymbols::dynamic(source, file));
    let is_static = !dynamic.named().any(|(symbol, _)| tables::is_undefined(symbol));
    let mut names = all.named().chain(dynamic.named());
    if names.any(|(symbol, name)| (is_static || tables::is_undefined(symbol)) && is_switch(name)) {
        return Ok(true);
    }
    // The C library and the dynamic linker contain the tools for it; libffi moves within the same
    // stack; unwinders are known.
    const KNOWN: [&str; 4] = ["longjmp", "__tls_get_addr", "ffi_call", "_Unwind_RaiseException"];
    let mut exports = dynamic.named().filter(|(symbol, _)| tables::is_definition(symbol));
    if exports.any(|(_, name)| KNOWN.contains(&name)) {
        return Ok(false);
    }
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
    if lengths.fold(0, u64::saturating_add) > source.length() {
        return Ok(true);
    }
    let mut frames = Some(frames);
    let mut functions = None;
    let mut number = 0;
    let mut is_one = |address: u64| -> Result<bool, TooLarge> {
        source.budget().check()?;
        if functions.is_none()
            && let Some(frames) = frames.take()
        {
            functions = Some(Functions::read(source, [all, dynamic], &code, frames()?)?);
        }
        number += 1;
        Ok(number > MOST || functions.as_ref().is_none_or(|it| it.has_instruction(address)))
    };
    for (address, place) in &code {
        let mut found = Ok(false);
        let visit = |start: u64, bytes: &[u8]| {
            found = writes(bytes)
                .map(|at| is_one(address.wrapping_add(start + at as u64)))
                .find(|is_one| !matches!(is_one, Ok(false)))
                .unwrap_or(Ok(false));
            match found {
                Ok(false) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        };
        // Unreadable code counts as a switch.
        let is_read = source.scan(place.clone(), LONGEST_INSTRUCTION, visit).is_ok();
        if found? || !is_read {
            return Ok(true);
        }
    }
    Ok(false)
}

const LONGEST_INSTRUCTION: usize = 15;

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
        Decoder::new(64, &bytes[*at..], DecoderOptions::NONE).iter().next().is_some_and(is_a_switch)
    })
}

fn is_a_switch(instruction: Instruction) -> bool {
    use Register::{R8, R9, RAX, RBP, RCX, RDI, RDX, RSI, RSP};
    if instruction.mnemonic() == Mnemonic::Xchg {
        return true;
    }
    match (instruction.code(), instruction.op1_kind()) {
        (Code::Add_rm64_r64 | Code::Add_r64_rm64, _) => true,
        (_, OpKind::Memory) => !matches!(instruction.memory_base(), RSP | RBP),
        _ => matches!(instruction.op1_register(), RAX | RCX | RDX | RSI | RDI | R8 | R9),
    }
}

/// Begins of functions. Decoding from there tells instructions from bytes that only look like one.
struct Functions<'a, 'data> {
    source: &'data Source,
    code: &'a [Place],
    frames: FrameTable<'data>,
    /// Address, end, and whether it is a `longjmp`, which returns on the same stack.
    symbols: Vec<(u64, u64, bool)>,
}

impl<'a, 'data> Functions<'a, 'data> {
    /// Bytes that a symbol takes.
    const KNOWN: u64 = 48;

    fn read(
        source: &'data Source,
        tables: [NamedSymbols<'data>; 2],
        code: &'a [Place],
        frames: FrameTable<'data>,
    ) -> Result<Self, TooLarge> {
        let count: usize = tables.iter().map(|table| table.symbols.len()).sum();
        let _symbols = source.budget().lend(count as u64 * Self::KNOWN)?;
        let functions =
            tables.into_iter().flat_map(NamedSymbols::named).filter_map(|(symbol, name)| {
                let (address, size, is_function) = tables::facts(symbol);
                let function = (address, address.saturating_add(size), name.contains("longjmp"));
                is_function.then_some(function)
            });
        let mut symbols: Vec<_> = functions.collect();
        symbols.sort_unstable();
        Ok(Self { source, code, frames, symbols })
    }

    fn has_instruction(&self, address: u64) -> bool {
        let before = self.symbols.partition_point(|(start, ..)| *start <= address);
        let around = self.symbols[..before].last().filter(|(_, end, _)| address < *end);
        let frame = self.frames.containing(address).map(|frame| frame.start);
        let is_longjmp = |start: u64| {
            let here = self.symbols.partition_point(|(other, ..)| *other < start);
            self.symbols[here..].iter().take_while(|(other, ..)| *other == start).any(|s| s.2)
        };
        let start = frame.or(around.map(|(start, ..)| *start));
        if start.is_some_and(is_longjmp) {
            return false;
        }
        let near = start.filter(|start| address - start < FAR);
        let bytes = near.and_then(|start| Some((start, self.bytes(start, address)?)));
        // Code of no known function counts as a switch.
        let Some((start, bytes)) = bytes else { return true };
        let mut decoder = Decoder::with_ip(64, &bytes, start, DecoderOptions::NONE);
        let mut last = Instruction::default();
        while decoder.ip() < address && decoder.can_decode() {
            last = decoder.decode();
        }
        // The match may lack its prefix.
        decoder.ip() == address
            || last.mnemonic() == Mnemonic::Mov && last.op0_register() == Register::RSP
    }

    /// Reads from one address to the end of the instruction at another.
    fn bytes(&self, start: u64, to: u64) -> Option<Vec<u8>> {
        self.code.iter().find_map(|(address, place)| {
            let from = place.start.checked_add(start.checked_sub(*address)?)?;
            let most = usize::try_from(to - start).ok()?.saturating_add(LONGEST_INSTRUCTION);
            let left = usize::try_from(place.end.checked_sub(from)?).unwrap_or(usize::MAX);
            Some(self.source.peek(from, most.min(left)))
        })
    }
}
