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

/// How far from the symbol before it code without an unwind entry may be.
const FAR: u64 = 4 << 10;

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

/// Whether anything in the object does.
pub(super) fn are_switched<'data>(
    file: &File<'data>,
    frames: impl FnOnce() -> FrameTable<'data>,
) -> bool {
    let is_static = file.dynamic_symbol_table().is_none();
    let mut names = file.symbols().chain(file.dynamic_symbols());
    if names
        .any(|symbol| (is_static || symbol.is_undefined()) && symbol.name().is_ok_and(is_switch))
    {
        return true;
    }
    // The C library and the dynamic linker have what others use to do so; libffi goes to another part
    // of the same stack.
    let mut exports = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    if exports.any(|symbol| matches!(symbol.name(), Ok("longjmp" | "__tls_get_addr" | "ffi_call")))
    {
        return false;
    }
    let mut found = file.sections().filter(is_code).flat_map(|section| {
        let bytes = section.data().unwrap_or_default();
        writes(bytes).map(move |at| section.address() + at as u64)
    });
    let Some(first) = found.next() else { return false };
    let functions = Functions::read(file, frames());
    std::iter::once(first).chain(found).any(|address| functions.has_instruction(address))
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
struct Functions<'file, 'data> {
    file: &'file File<'data>,
    frames: FrameTable<'data>,
    /// Address, and whether it is a `longjmp`, which goes back on the same stack.
    symbols: Vec<(u64, bool)>,
}

impl<'file, 'data> Functions<'file, 'data> {
    fn read(file: &'file File<'data>, frames: FrameTable<'data>) -> Self {
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let functions = symbols.filter(|s| s.kind() == SymbolKind::Text && s.is_definition());
        let mut symbols: Vec<_> = functions
            .map(|s| (s.address(), s.name().is_ok_and(|name| name.contains("longjmp"))))
            .collect();
        symbols.sort_unstable();
        Self { file, frames, symbols }
    }

    fn has_instruction(&self, address: u64) -> bool {
        let before = self.symbols.partition_point(|(start, _)| *start <= address);
        let near = self.symbols[..before].last().filter(|(start, _)| address - start < FAR);
        if near.is_some_and(|(_, is_longjmp)| *is_longjmp) {
            return false;
        }
        let frame = self.frames.containing(address).map(|frame| frame.start);
        // Code that nothing tells of is taken at its word.
        let Some(start) = frame.or(near.map(|(start, _)| *start)) else { return true };
        let section = self.file.sections().find(|section| {
            (section.address()..section.address() + section.size()).contains(&start)
        });
        let bytes = section.and_then(|section| {
            let all = section.data().ok()?;
            all.get(usize::try_from(start - section.address()).ok()?..)
        });
        let Some(bytes) = bytes else { return true };
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        while decoder.ip() < address && decoder.can_decode() {
            let _ = decoder.decode();
        }
        decoder.ip() == address
    }
}
