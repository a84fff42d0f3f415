//! The attach cookie: all an eBPF program is told about the site it sits on.

/// `condition` of a site that always counts.
pub const NO_CONDITION: u8 = 0xff;
/// `jump` of a site that is no indirect jump.
pub const NO_JUMP: u16 = 0xffff;

/// Packed into the 64 bits of a cookie: bits 0–31 probe id, 32–39 condition code of a conditional
/// jump (the x86 `cc` nibble, or [`NO_CONDITION`]), 48–63 index into the table of indirect jumps
/// (or [`NO_JUMP`]), 40–47 the record kind an exit site reports (`ExitRet` or `ExitJump`; 0 elsewhere).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie(pub u64);

impl Cookie {
    /// An entry, return or USDT site.
    pub const fn plain(probe: u32) -> Self {
        Self::exit(probe, 0, NO_CONDITION, NO_JUMP)
    }

    /// A way out of a function.
    pub const fn exit(probe: u32, kind: u8, condition: u8, jump: u16) -> Self {
        Self(probe as u64 | (condition as u64) << 32 | (kind as u64) << 40 | (jump as u64) << 48)
    }

    pub const fn probe(self) -> u32 {
        self.0 as u32
    }

    pub const fn condition(self) -> u8 {
        (self.0 >> 32) as u8
    }

    pub const fn kind(self) -> u8 {
        (self.0 >> 40) as u8
    }

    pub const fn jump(self) -> u16 {
        (self.0 >> 48) as u16
    }
}
