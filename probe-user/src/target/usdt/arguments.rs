//! The arguments of a USDT site, as its note describes them: `-4@%edi 8f@-24(%rbp) 4@$5`.
//!
//! Each is a size and an operand as the compiler writes it for x86-64. A note can contain anything,
//! so an argument that is not fully understood is not read.

use ctrace_common::{MAX_VALUES, Operand};
use thiserror::Error;

/// The longest text of a site's arguments in a note: many times what compilers write.
const LONGEST: usize = 4096;

/// The reason why an argument is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unread {
    #[error("it is in no form that ctrace knows")]
    Form,
    #[error("it is a floating-point number only there")]
    Mixed,
    #[error("it has none of the sizes 1, 2, 4 and 8")]
    Size,
    #[error("it is a floating-point number of another size than 4 and 8")]
    FloatSize,
    #[error("it is in a register that ctrace does not read")]
    Register,
    #[error("it lies at a symbol whose address the symbol table does not tell")]
    Symbol,
    #[error("the arguments take more than 4096 bytes")]
    TooLong,
    #[error("the note of this place has no such argument")]
    Missing,
    #[error(
        "it is smaller than what is asked for, or only one of the two is a floating-point number"
    )]
    OtherType,
    #[error("a floating-point number is no length of a text")]
    FloatLength,
}

/// An argument as the note has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument<'a> {
    pub text: &'a str,
    pub source: Result<ArgumentSource<'a>, Unread>,
}

/// The place of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentSource<'a> {
    operand: Operand,
    /// It is a floating-point number of the operand's size.
    pub is_float: bool,
    /// A symbol whose address, less that of the site, is added to the displacement.
    pub symbol: Option<&'a str>,
}

impl ArgumentSource<'_> {
    /// Returns the operand that the program at the site reads. `address_of` returns the address of
    /// a symbol in the same terms as `site`.
    pub fn operand(
        &self,
        site: u64,
        address_of: impl Fn(&str) -> Option<u64>,
    ) -> Result<Operand, Unread> {
        let Some(symbol) = self.symbol else { return Ok(self.operand) };
        let distance = address_of(symbol).ok_or(Unread::Symbol)?.wrapping_sub(site);
        let displacement = self.operand.displacement.wrapping_add(distance as i64);
        Ok(Operand { displacement, relative: 1, ..self.operand })
    }
}

/// Parses the arguments of a site, in their order, up to the number that a note can have.
pub fn parse(text: &str) -> Vec<Argument<'_>> {
    if text.len() > LONGEST {
        return vec![Argument { text: "", source: Err(Unread::TooLong) }];
    }
    let one = |text| Argument { text, source: argument(text) };
    pieces(text).take(MAX_VALUES).map(one).collect()
}

/// Returns the number of arguments of a site, also of those that [`parse`] leaves out.
pub fn count(text: &str) -> usize {
    if text.len() > LONGEST { 0 } else { pieces(text).count() }
}

/// Splits the text at blanks, except those within parentheses.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    let at_blank = move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c.is_ascii_whitespace()
    };
    text.split(at_blank).filter(|piece| !piece.is_empty())
}

/// Parses `N@OPERAND` and `Nf@OPERAND`.
fn argument(text: &str) -> Result<ArgumentSource<'_>, Unread> {
    let (size, place) = text.split_once('@').ok_or(Unread::Form)?;
    let signed = size.starts_with('-');
    let size = size.strip_prefix('-').unwrap_or(size);
    let (size, is_float) = size.strip_suffix('f').map_or((size, false), |size| (size, true));
    let size = match size {
        "4" => 4,
        "8" => 8,
        other if is_float && other.parse::<u32>().is_ok() => return Err(Unread::FloatSize),
        "1" => 1,
        "2" => 2,
        other if other.parse::<u32>().is_ok() => return Err(Unread::Size),
        _ => return Err(Unread::Form),
    };
    let mut source = match place.split_at_checked(1) {
        Some(("$", _)) if is_float => return Err(Unread::Form),
        Some(("$", number)) => sum(number)?,
        Some(("%", name)) => {
            let Register { number, size: width, shift } = register(name)?;
            let operand = Operand { base: number, shift, size: width, ..Operand::ZERO };
            ArgumentSource { operand, is_float: false, symbol: None }
        }
        _ => memory(place)?,
    };
    if is_float && source.operand.size < size {
        return Err(Unread::Form);
    }
    // Bits above a register's own size do not belong to the argument.
    source.operand.size = source.operand.size.min(size);
    source.operand.signed = (signed && !is_float).into();
    source.is_float = is_float;
    Ok(source)
}

/// Parses `DISPLACEMENT(BASE,INDEX,SCALE)`: any part may be missing, but not all.
fn memory(text: &str) -> Result<ArgumentSource<'_>, Unread> {
    let (displacement, registers) = match text.split_once('(') {
        Some((displacement, rest)) => (displacement, rest.strip_suffix(')').ok_or(Unread::Form)?),
        None => (text, ""),
    };
    if text.contains(':') {
        // The base of a segment is unknown here.
        return Err(Unread::Register);
    }
    if displacement.is_empty() && registers.is_empty() {
        return Err(Unread::Form);
    }
    let mut source = match displacement {
        "" => ArgumentSource { operand: Operand::ZERO, is_float: false, symbol: None },
        sum_of => sum(sum_of)?,
    };
    let operand = &mut source.operand;
    operand.memory = 1;
    let mut parts = registers.split(',').map(str::trim);
    match parts.next() {
        None | Some("") => {}
        // A number here is relative to the probe, as other tracers read it.
        Some("%rip") if !registers.contains(',') => operand.relative = 1,
        Some(base) => operand.base = whole_register(base)?,
    }
    if let Some(index) = parts.next() {
        operand.index = whole_register(index)?;
    }
    operand.scale = match parts.next() {
        None | Some("1") => 1,
        Some("2") => 2,
        Some("4") => 4,
        Some("8") => 8,
        Some(_) => return Err(Unread::Form),
    };
    if parts.next().is_some() { Err(Unread::Form) } else { Ok(source) }
}

/// Parses `8`, `-24`, `symbol`, `symbol+4-0x10`: numbers and at most one symbol.
fn sum(text: &str) -> Result<ArgumentSource<'_>, Unread> {
    let mut total = 0i128;
    let mut symbol = None;
    let mut rest = text;
    let mut is_first = true;
    while !rest.is_empty() {
        let (negative, term) = match rest.split_at_checked(1) {
            Some(("-", term)) => (true, term),
            Some(("+", term)) => (false, term),
            _ if is_first => (false, rest),
            _ => return Err(Unread::Form),
        };
        is_first = false;
        let end = term.find(['+', '-']).unwrap_or(term.len());
        let (term, tail) = term.split_at(end);
        rest = tail;
        if term.starts_with(|c: char| c.is_ascii_digit()) {
            let number = match term.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => term.parse(),
            };
            let number = i128::from(number.map_err(|_| Unread::Form)?);
            total += if negative { -number } else { number };
        } else if is_symbol(term) && !negative && symbol.is_none() {
            symbol = Some(term);
        } else {
            return Err(Unread::Form);
        }
    }
    let displacement = match i64::try_from(total) {
        Ok(number) => number,
        // `$18446744073709551615` is a number of 64 bits, too.
        Err(_) => u64::try_from(total).map_err(|_| Unread::Form)?.cast_signed(),
    };
    let is_something = !is_first;
    is_something
        .then_some(ArgumentSource {
            operand: Operand { displacement, ..Operand::ZERO },
            is_float: false,
            symbol,
        })
        .ok_or(Unread::Form)
}

fn is_symbol(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
    !text.is_empty() && text.chars().all(is_part)
}

/// A register, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Register {
    number: u8,
    size: u8,
    shift: u8,
}

/// The names of the registers, in the order of their numbers.
const NAMES: [[&str; 4]; 8] = [
    ["rax", "eax", "ax", "al"],
    ["rcx", "ecx", "cx", "cl"],
    ["rdx", "edx", "dx", "dl"],
    ["rbx", "ebx", "bx", "bl"],
    ["rsp", "esp", "sp", "spl"],
    ["rbp", "ebp", "bp", "bpl"],
    ["rsi", "esi", "si", "sil"],
    ["rdi", "edi", "di", "dil"],
];
const SIZES: [u8; 4] = [8, 4, 2, 1];
/// The second bytes of the first four registers.
const SECOND: [&str; 4] = ["ah", "ch", "dh", "bh"];

/// Finds a register by its name without `%`.
fn register(name: &str) -> Result<Register, Unread> {
    for (number, names) in (0..).zip(NAMES) {
        if let Some(place) = names.iter().position(|known| *known == name) {
            return Ok(Register { number, size: SIZES[place], shift: 0 });
        }
    }
    if let Some(number) = SECOND.iter().position(|known| *known == name) {
        return Ok(Register { number: number as u8, size: 1, shift: 8 });
    }
    numbered(name).ok_or(Unread::Register)
}

/// Parses `r8` to `r15`, and their parts with `d`, `w` and `b`.
fn numbered(name: &str) -> Option<Register> {
    let name = name.strip_prefix('r')?;
    let digits = name.trim_end_matches(['d', 'w', 'b']);
    let size = match &name[digits.len()..] {
        "" => 8,
        "d" => 4,
        "w" => 2,
        "b" => 1,
        _ => return None,
    };
    let number = (8..16).find(|number: &u8| number.to_string() == digits)?;
    Some(Register { number, size, shift: 0 })
}

/// Parses a register of an address.
fn whole_register(text: &str) -> Result<u8, Unread> {
    match register(text.strip_prefix('%').ok_or(Unread::Form)?)? {
        Register { number, size: 8, .. } => Ok(number),
        _ => Err(Unread::Register),
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
