//! Tells instructions from bytes that only look like one, by decoding from the beginning of the
//! function around them.

use crate::target::elf::frames::FrameTable;
use crate::target::elf::tables::{self, NamedSymbols};
use crate::target::place::code::stacks::{LONGEST_INSTRUCTION, Place, leaves_stack};
use crate::target::read::budget::TooLarge;
use crate::target::read::source::Source;
use iced_x86::{Decoder, DecoderOptions, Instruction};

/// Limit of the search, in bytes back to a function's begin: a hostile file must not cost us time.
const FAR: u64 = 64 << 10;

/// The answer for bytes that would set the stack pointer if they were an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// They are none, or the function returns on the same stack.
    Nothing,
    Instruction {
        address: u64,
        function: Extent,
    },
    /// They are too far into this function, or its bytes cannot be read.
    Far(Extent),
    /// They are in no known function.
    Nowhere,
}

/// A function, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// A function's symbol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Symbol {
    start: u64,
    end: u64,
    /// True for `longjmp` and unwinders, which return on the same stack.
    stays: bool,
}

/// Begins of functions.
pub(crate) struct Functions<'a, 'data> {
    source: &'data Source,
    code: &'a [Place],
    frames: &'a FrameTable<'data>,
    symbols: Vec<Symbol>,
}

impl<'a, 'data> Functions<'a, 'data> {
    /// Bytes that a symbol takes.
    const KNOWN: u64 = 2 * size_of::<Symbol>() as u64;

    pub(crate) fn read(
        source: &'data Source,
        tables: [NamedSymbols<'data>; 2],
        code: &'a [Place],
        frames: &'a FrameTable<'data>,
    ) -> Result<Self, TooLarge> {
        let count: usize = tables.iter().map(|table| table.symbols.len()).sum();
        let _symbols = source.budget().lend(count as u64 * Self::KNOWN)?;
        let functions =
            tables.into_iter().flat_map(NamedSymbols::named).filter_map(|(symbol, name)| {
                let (start, size, is_function) = tables::facts(symbol);
                let end = start.saturating_add(size);
                let is_in_code = || code.iter().any(|place| offset_in(place, start).is_some());
                let is_function = is_function || tables::is_global_label(symbol) && is_in_code();
                is_function.then_some(Symbol { start, end, stays: stays(name) })
            });
        let mut symbols: Vec<_> = functions.collect();
        symbols.sort_unstable();
        Ok(Self { source, code, frames, symbols })
    }

    /// Looks at bytes that would set the stack pointer if they were an instruction.
    pub(crate) fn find(&self, address: u64) -> Found {
        let Some(function) = self.around(address) else { return Found::Nowhere };
        if self.stays(function.start) {
            return Found::Nothing;
        }
        let near = address - function.start < FAR;
        let bytes = near.then(|| self.bytes(function.start, address)).flatten();
        let Some(bytes) = bytes else { return Found::Far(function) };
        let mut decoder = Decoder::with_ip(64, &bytes, function.start, DecoderOptions::NONE);
        let mut last = Instruction::default();
        while decoder.ip() <= address && decoder.can_decode() {
            last = decoder.decode();
        }
        // The match may lack its prefix.
        match last.ip() == address || leaves_stack(&last) {
            true => Found::Instruction { address: last.ip(), function },
            false => Found::Nothing,
        }
    }

    fn around(&self, address: u64) -> Option<Extent> {
        if let Some(frame) = self.frames.containing(address) {
            return Some(Extent { start: frame.start, end: frame.end });
        }
        let before = self.symbols.partition_point(|symbol| symbol.start <= address);
        let last = self.symbols[..before].last()?;
        let next = self.symbols.get(before).map_or(u64::MAX, |next| next.start);
        // Assemblers write no size by themselves.
        let end = if last.end == last.start { next } else { last.end };
        (address < end).then_some(Extent { start: last.start, end })
    }

    /// Returns the range without known functions around an address that is in none.
    pub(crate) fn gap(&self, address: u64) -> Option<Extent> {
        let (section, place) =
            self.code.iter().find(|place| offset_in(place, address).is_some())?;
        let before = self.symbols.partition_point(|symbol| symbol.start <= address);
        let after = self.symbols.get(before).map_or(u64::MAX, |symbol| symbol.start);
        let before = self.symbols[..before].last().map_or(0, |symbol| symbol.end);
        let frames = self.frames.gap(address);
        let start = frames.start.max(before).max(*section).min(address);
        let end = section.saturating_add(place.end - place.start).min(frames.end).min(after);
        Some(Extent { start, end })
    }

    /// Returns whether the instruction at an address is one of a known function.
    pub(crate) fn has_instruction(&self, address: u64) -> bool {
        let Some(function) = self.around(address) else { return false };
        let near = address - function.start < FAR;
        let Some(bytes) = near.then(|| self.bytes(function.start, address)).flatten() else {
            return false;
        };
        let mut decoder = Decoder::with_ip(64, &bytes, function.start, DecoderOptions::NONE);
        while decoder.ip() < address && decoder.can_decode() {
            let _ = decoder.decode();
        }
        decoder.ip() == address
    }

    fn stays(&self, start: u64) -> bool {
        let here = self.symbols.partition_point(|symbol| symbol.start < start);
        let mut here = self.symbols[here..].iter().take_while(|symbol| symbol.start == start);
        here.any(|symbol| symbol.stays)
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

/// Returns how far into a section of code an address is.
fn offset_in((section, place): &Place, address: u64) -> Option<u64> {
    address.checked_sub(*section).filter(|past| *past < place.end - place.start)
}

fn stays(name: &str) -> bool {
    name.contains("longjmp") || name.starts_with("_Unwind_") || name.starts_with("__libunwind_")
}
