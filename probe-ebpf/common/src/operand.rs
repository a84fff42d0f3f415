//! The source of a number when a probe is hit: a register, memory, or a constant.

/// Stands for no register in this place of the operand.
pub const NO_REGISTER: u8 = 0xff;

/// An operand of x86-64 code.
///
/// Registers are numbered as in x86-64 encodings: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6,
/// rdi 7, r8–r15. The number is `displacement + base + index * scale`, plus the probe's own address
/// if `relative` is set. `memory` says where it leads.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operand {
    /// The whole constant if there is no register. For a RIP-relative operand, relative to the
    /// probe. With [`FOLLOW`](Self::FOLLOW), the low half leads to the pointer, and the high half from
    /// where it points to.
    pub displacement: i64,
    /// The base register or [`NO_REGISTER`].
    pub base: u8,
    /// The index register or [`NO_REGISTER`].
    pub index: u8,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// [`READ`](Self::READ), [`FOLLOW`](Self::FOLLOW), both, or 0. Targets of jumps follow none.
    pub memory: u8,
    /// 1: the address is relative to the probe (RIP-relative).
    pub relative: u8,
    /// The number of bytes that count: 1, 2, 4 or 8. The others are cut off. The target of a jump
    /// always has 8.
    pub size: u8,
    /// 1: a shorter number is extended with its sign.
    pub signed: u8,
    /// The number of bits to shift right before the cut: 8 for `%ah` and the like, and those before a
    /// member of a structure that is in a register. 0 elsewhere, and for targets of jumps.
    pub shift: u8,
}

impl Operand {
    /// The number lies in memory.
    pub const READ: u8 = 1;
    /// A pointer lies in memory. The number, or its address, is where it points to.
    pub const FOLLOW: u8 = 2;
    /// The number 0. Others are made from it.
    pub const ZERO: Self = Self {
        displacement: 0,
        base: NO_REGISTER,
        index: NO_REGISTER,
        scale: 1,
        memory: 0,
        relative: 0,
        size: 8,
        signed: 0,
        shift: 0,
    };
    /// An operand that can never be read: its address is the end of the kernel's half of all
    /// addresses.
    pub const NOWHERE: Self = Self { displacement: -1, memory: Self::READ, size: 1, ..Self::ZERO };

    /// Returns the operand for what this one points to. `None` behind a second pointer in memory.
    pub fn followed(self) -> Option<Self> {
        match self.memory {
            0 => Some(Self { memory: Self::READ, ..self }),
            Self::READ => {
                let near = i32::try_from(self.displacement).ok()?;
                let memory = Self::READ | Self::FOLLOW;
                Some(Self { displacement: i64::from(near as u32), memory, ..self })
            }
            _ => None,
        }
    }

    /// Returns the operand for what is so many bytes behind this one in memory. `None` if that is too
    /// far.
    pub fn behind(self, bytes: u64) -> Option<Self> {
        let bytes = i64::try_from(bytes).ok()?;
        let displacement = if self.memory & Self::FOLLOW == 0 {
            self.displacement.checked_add(bytes)?
        } else {
            let onward = i32::try_from(self.onward().checked_add(bytes)?).ok()?;
            i64::from(onward) << 32 | i64::from(self.displacement as u32)
        };
        Some(Self { displacement, ..self })
    }

    /// Returns the displacement to the number, or to a pointer that is followed first.
    #[inline(always)]
    pub fn near(&self) -> i64 {
        let cut = u32::from(self.memory & Self::FOLLOW) << 4;
        self.displacement << cut >> cut
    }

    /// Returns the displacement from where a pointer leads.
    #[inline(always)]
    pub fn onward(&self) -> i64 {
        self.displacement >> 32
    }

    pub fn to_bytes(&self) -> [u8; size_of::<Self>()] {
        let mut bytes = [0; size_of::<Self>()];
        let (displacement, rest) = bytes.split_at_mut(8);
        displacement.copy_from_slice(&self.displacement.to_le_bytes());
        let Self { displacement: _, base, index, scale, memory, relative, size, signed, shift } =
            *self;
        rest.copy_from_slice(&[base, index, scale, memory, relative, size, signed, shift]);
        bytes
    }
}

const _: () = assert!(size_of::<Operand>() == 16);
