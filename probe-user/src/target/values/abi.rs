//! The places where the System V ABI of x86-64 puts the arguments and the result of a function when
//! it is entered and left.
//!
//! Integers and pointers are in six registers, floating-point numbers in eight others, and what
//! finds no register is on the stack. Both kinds of registers are given out in the order of the
//! parameters. So a place is that within its own kind: it does not depend on parameters of the
//! other kind, which the user need not know.

use ctrace_common::{Operand, ValueForm};
use ctrace_core::{function::ValueKind, locks};
use std::{fmt, str::FromStr};

/// The registers of integers and pointers, in the numbers of the instruction encoding: rdi, rsi,
/// rdx, rcx, r8, r9.
const INTEGERS: [u8; 6] = [7, 6, 2, 1, 8, 9];
const RAX: u8 = 0;
const RDX: u8 = 2;
const RSP: u8 = 4;
/// The largest number of a slot on the stack.
const LAST_SLOT: u8 = 63;
/// The place of the type in a `pthread_mutex_t` of glibc.
const MUTEX_TYPE: i64 = 16;

/// A type of C that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Integer { bytes: u8, signed: bool },
    Bool,
    Char,
    Pointer,
    Float { bytes: u8 },
    Text,
}

impl Type {
    /// The names of all types.
    pub(crate) const NAMES: &str = "i8 u8 i16 u16 i32 u32 i64 u64 bool char ptr f32 f64 str";
    /// The names of those that a result can have: floating-point ones are in vector registers.
    pub(crate) const RESULTS: &str = "i8 u8 i16 u16 i32 u32 i64 u64 bool char ptr str";

    pub(crate) fn kind(self) -> ValueKind {
        match self {
            Self::Integer { signed: true, .. } => ValueKind::Signed,
            Self::Integer { signed: false, .. } => ValueKind::Unsigned,
            Self::Bool => ValueKind::Bool,
            Self::Char => ValueKind::Char,
            Self::Pointer => ValueKind::Pointer,
            Self::Float { .. } => ValueKind::Float,
            Self::Text => ValueKind::Text,
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::Float { .. })
    }

    fn form(self) -> ValueForm {
        match self {
            Self::Float { bytes: 4 } => ValueForm::Single,
            Self::Text => ValueForm::Text,
            _ => ValueForm::Word,
        }
    }

    /// Returns the source of a value of this type that is, or lies at, this base.
    pub(crate) fn at(self, base: Operand) -> (Operand, ValueForm) {
        let (size, signed) = match self {
            Self::Integer { bytes, signed } => (bytes, signed),
            Self::Bool | Self::Char => (1, false),
            Self::Float { bytes } => (bytes, false),
            Self::Pointer | Self::Text => (8, false),
        };
        (Operand { size, signed: signed.into(), ..base }, self.form())
    }

    /// Returns the source of a USDT argument that is read as this type. `None` if it is too small.
    pub(crate) fn of_note(self, argument: Operand) -> Option<(Operand, ValueForm)> {
        let (operand, form) = self.at(argument);
        (operand.size <= argument.size).then_some((operand, form))
    }

    /// Returns the source of a USDT argument that somebody declares as this type. `None` if its note
    /// tells otherwise: a number has the size that the program passed.
    pub(crate) fn declared(
        self,
        argument: Operand,
        is_float: bool,
    ) -> Option<(Operand, ValueForm)> {
        let (operand, form) = self.of_note(argument).filter(|_| is_float == self.is_float())?;
        match self {
            Self::Integer { .. } | Self::Float { .. } => {
                (operand.size == argument.size).then_some((operand, form))
            }
            // In C, conditions and characters in quotes are `int`.
            Self::Bool => Some((Operand { size: argument.size, ..operand }, form)),
            Self::Char => (argument.size <= 4).then_some((operand, form)),
            Self::Pointer | Self::Text => Some((operand, form)),
        }
    }

    /// Returns the source of a value of this type that cannot be read.
    pub(crate) fn nowhere(self) -> (Operand, ValueForm) {
        (Operand::NOWHERE, self.form())
    }

    /// Returns the source of a result of this type, which is no floating-point number.
    pub(crate) fn result(self) -> (Operand, ValueForm) {
        self.at(results()[0])
    }
}

/// Returns the sources of the 8 bytes of a result, and of those behind them.
pub(super) fn results() -> [Operand; 2] {
    [RAX, RDX].map(|base| Operand { base, ..Operand::ZERO })
}

/// Displays the name that [`FromStr`] takes.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { bytes, signed: true } => write!(f, "i{}", 8 * bytes),
            Self::Integer { bytes, signed: false } => write!(f, "u{}", 8 * bytes),
            Self::Bool => f.write_str("bool"),
            Self::Char => f.write_str("char"),
            Self::Pointer => f.write_str("ptr"),
            Self::Float { bytes } => write!(f, "f{}", 8 * bytes),
            Self::Text => f.write_str("str"),
        }
    }
}

impl FromStr for Type {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let integer = |bytes, signed| Ok(Self::Integer { bytes, signed });
        match name {
            "i8" => integer(1, true),
            "u8" => integer(1, false),
            "i16" => integer(2, true),
            "u16" => integer(2, false),
            "i32" => integer(4, true),
            "u32" => integer(4, false),
            "i64" => integer(8, true),
            "u64" => integer(8, false),
            "bool" => Ok(Self::Bool),
            "char" => Ok(Self::Char),
            "ptr" => Ok(Self::Pointer),
            "f32" => Ok(Self::Float { bytes: 4 }),
            "f64" => Ok(Self::Float { bytes: 8 }),
            "str" => Ok(Self::Text),
            _ => Err(()),
        }
    }
}

/// The place of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// The number of a register, in the order in which the ABI gives them out.
    Register(u8),
    /// The number of 8 bytes on the stack, behind the return address.
    Stack(u8),
    /// The return address.
    Caller,
    /// The type that glibc keeps in the mutex whose address is in this register.
    MutexType(u8),
}

/// The reason why a place is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPosition {
    Unknown,
    /// This register does not exist: the stack goes on.
    NoRegister(u64),
    TooFar,
}

impl Position {
    /// Returns the source of an argument of this type; `None` for a floating-point number in a
    /// register, which programs cannot read.
    pub(crate) fn source(self, of: Type) -> Option<(Operand, ValueForm)> {
        let is_readable = !matches!(self, Self::Register(_)) || !of.is_float();
        is_readable.then(|| of.at(self.base()))
    }

    /// Returns the source of the 8 bytes there.
    pub(crate) fn base(self) -> Operand {
        match self {
            Self::Register(number) => {
                Operand { base: INTEGERS[usize::from(number)], ..Operand::ZERO }
            }
            Self::Stack(slot) => {
                // The return address comes first.
                let displacement = 8 + 8 * i64::from(slot);
                Operand { displacement, base: RSP, memory: Operand::READ, ..Operand::ZERO }
            }
            Self::Caller => Operand { base: RSP, memory: 1, ..Operand::ZERO },
            Self::MutexType(register) => {
                Operand { displacement: MUTEX_TYPE, memory: 1, ..Self::Register(register).base() }
            }
        }
    }
}

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Self, NoPosition> {
        let (digits, is_on_stack) = text.strip_prefix('s').map_or((text, false), |it| (it, true));
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NoPosition::Unknown);
        }
        let number: u64 = digits.parse().map_err(|_| NoPosition::TooFar)?;
        match (u8::try_from(number), is_on_stack) {
            (Ok(slot @ ..=LAST_SLOT), true) => Ok(Self::Stack(slot)),
            (Ok(register), false) if usize::from(register) < INTEGERS.len() => {
                Ok(Self::Register(register))
            }
            (Ok(..=LAST_SLOT), false) => Err(NoPosition::NoRegister(number)),
            _ => Err(NoPosition::TooFar),
        }
    }
}

/// Displays the name of an argument that has no other.
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Register(number) => write!(f, "arg{number}"),
            Self::Stack(slot) => write!(f, "sarg{slot}"),
            Self::Caller => f.write_str(locks::CALLER),
            Self::MutexType(_) => f.write_str(locks::TYPE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lie_where_the_abi_puts_them() {
        let source = |place: &str, of: &str| {
            let place: Position = place.parse().unwrap();
            place.source(of.parse().unwrap())
        };
        let (first, form) = source("0", "i32").unwrap();
        assert_eq!((first.base, first.memory, first.size, first.signed), (7, 0, 4, 1));
        assert_eq!(form, ValueForm::Word);
        let bases = ["0", "1", "2", "3", "4", "5"].map(|at| source(at, "u64").unwrap().0.base);
        assert_eq!(bases, INTEGERS);
        let (on_stack, form) = source("s2", "f32").unwrap();
        assert_eq!((on_stack.base, on_stack.displacement, on_stack.memory), (RSP, 24, 1));
        assert_eq!((on_stack.size, form), (4, ValueForm::Single));
        assert_eq!(source("s0", "str").unwrap().1, ValueForm::Text);
        assert_eq!(source("5", "f64"), None);
    }

    #[test]
    fn places_that_are_none_are_told() {
        let place = |text: &str| text.parse::<Position>();
        assert_eq!(place("6"), Err(NoPosition::NoRegister(6)));
        assert_eq!(place("s63"), Ok(Position::Stack(63)));
        assert_eq!(place("s64"), Err(NoPosition::TooFar));
        assert_eq!(place("99999999999999999999"), Err(NoPosition::TooFar));
        for text in ["", "s", "-1", "+1", "x", "s-1", "0x1", "1 "] {
            assert_eq!(place(text), Err(NoPosition::Unknown), "{text}");
        }
    }

    #[test]
    fn every_name_is_a_type() {
        let types: Vec<Type> = Type::NAMES.split(' ').map(|name| name.parse().unwrap()).collect();
        let names: Vec<String> = types.iter().map(Type::to_string).collect();
        assert_eq!((types.len(), names.join(" ").as_str()), (14, Type::NAMES));
        assert!("int".parse::<Type>().is_err());
        let results = types.iter().filter(|of| !of.is_float()).map(Type::to_string);
        assert_eq!(results.collect::<Vec<_>>().join(" "), Type::RESULTS);
    }
}
