//! Whether an object switches stacks: coroutines, and signal handlers with a stack of their own.
//!
//! The kernel keeps the return addresses of return probes in one pile per thread, in the order of
//! the stack pointer; two stacks that take turns mix it up, and the target hangs or dies. Libraries
//! for that are known by name. Others write the stack pointer themselves: from an argument or from
//! memory, or by adding to it. Compilers restore it, too, but from where the same function saved it:
//! a register that calls preserve, or the frame.

use super::frames::FrameTable;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolKind, elf};

type File<'data> = ElfFile64<'data, LittleEndian, &'data [u8]>;

/// How far back the beginning of a function is looked for; what is farther in one is taken at its word,
/// and so is what a file has too much of: it may have been made to take our time.
const FAR: u64 = 64 << 10;
const MOST: usize = 10_000;

/// Whether a symbol that an object imports, or contains if it is static, tells that it does.
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

/// Whether anything in the object does. `segments` are those of code.
pub(super) fn are_switched<'data>(
    file: &File<'data>,
    segments: &[(u64, &'data [u8])],
    frames: impl FnOnce() -> FrameTable<'data>,
) -> bool {
    let is_static = !file.dynamic_symbols().any(|symbol| symbol.is_undefined());
    let mut names = file.symbols().chain(file.dynamic_symbols());
    if names
        .any(|symbol| (is_static || symbol.is_undefined()) && symbol.name().is_ok_and(is_switch))
    {
        return true;
    }
    // The C library and the dynamic linker have what others use to do so; libffi goes to another part
    // of the same stack; what unwinders do is known.
    const KNOWN: [&str; 4] = ["longjmp", "__tls_get_addr", "ffi_call", "_Unwind_RaiseException"];
    let mut exports = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    if exports.any(|symbol| symbol.name().is_ok_and(|name| KNOWN.contains(&name))) {
        return false;
    }
    let sections = file.sections().filter(is_code);
    let mut code: Vec<(u64, &[u8])> = sections
        .filter_map(|section| Some((section.address(), section.data().ok()?)))
        .filter(|(_, bytes)| !bytes.is_empty())
        .collect();
    if code.is_empty() {
        code = segments.to_vec();
    }
    let all: usize = code.iter().map(|(_, bytes)| bytes.len()).fold(0, usize::saturating_add);
    if all > file.data().len() {
        return true;
    }
    let mut found = code
        .iter()
        .flat_map(|(address, bytes)| writes(bytes).map(move |at| address.wrapping_add(at as u64)));
    let Some(first) = found.next() else { return false };
    let functions = Functions::read(file, &code, frames());
    let mut found = std::iter::once(first).chain(found).enumerate();
    found.any(|(number, address)| number >= MOST || functions.has_instruction(address))
}

fn is_code<'data>(section: &impl ObjectSection<'data>) -> bool {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return false };
    let is_stub = section.name().is_ok_and(|name| name.starts_with(".plt"));
    sh_flags.0 & elf::SHF_EXECINSTR.0 != 0 && !is_stub
}

/// Where bytes are, read from there, an instruction that puts the stack pointer elsewhere.
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

/// Where functions begin: reading on from there tells instructions from what only looks like one.
struct Functions<'a, 'data> {
    code: &'a [(u64, &'data [u8])],
    frames: FrameTable<'data>,
    /// Address, end, and whether it is a `longjmp`, which goes back on the same stack.
    symbols: Vec<(u64, u64, bool)>,
}

impl<'a, 'data> Functions<'a, 'data> {
    fn read(file: &File<'data>, code: &'a [(u64, &'data [u8])], frames: FrameTable<'data>) -> Self {
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let functions = symbols.filter(|s| s.kind() == SymbolKind::Text && s.is_definition());
        let mut symbols: Vec<_> = functions
            .map(|s| {
                let is_longjmp = s.name().is_ok_and(|name| name.contains("longjmp"));
                (s.address(), s.address().saturating_add(s.size()), is_longjmp)
            })
            .collect();
        symbols.sort_unstable();
        Self { code, frames, symbols }
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
        let bytes = near.and_then(|start| Some((start, self.bytes(start)?)));
        // Code that nothing tells of is taken at its word.
        let Some((start, bytes)) = bytes else { return true };
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let mut last = Instruction::default();
        while decoder.ip() < address && decoder.can_decode() {
            last = decoder.decode();
        }
        // What was found may lack its prefix.
        decoder.ip() == address
            || last.mnemonic() == Mnemonic::Mov && last.op0_register() == Register::RSP
    }

    fn bytes(&self, address: u64) -> Option<&'data [u8]> {
        self.code.iter().find_map(|(start, bytes)| {
            bytes.get(usize::try_from(address.checked_sub(*start)?).ok()?..)
        })
    }
}
