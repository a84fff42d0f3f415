//! The attach cookie: all an eBPF program is told about the site it sits on.

/// `condition` of a site that always counts.
pub const NO_CONDITION: u8 = 0xff;
/// `index` of a site that has no entry in a table.
pub const NO_INDEX: u16 = 0xffff;

/// The bits of an address that mapping a file leaves alone.
const IN_PAGE: u64 = 0xfff;

/// Packed into the 64 bits of a cookie: bits 0–31 probe id, 32–39 condition code of a conditional
/// jump (the x86 `cc` nibble, or [`NO_CONDITION`]), 40–47 the record kind an exit site reports
/// (`ExitRet` or `ExitJump`; 0 elsewhere), 48–63 the site's index in the table of its program, or
/// [`NO_INDEX`]: `JUMPS` for an exit site, `VALUES` for a point with values. On a session link, whose
/// programs have no table, these bits say where in its page the site lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie(pub u64);

impl Cookie {
    /// An entry, return or USDT site.
    pub const fn plain(probe: u32) -> Self {
        Self::with_values(probe, NO_INDEX)
    }

    /// A USDT site whose values are read as the element `values` of `VALUES` says.
    pub const fn with_values(probe: u32, values: u16) -> Self {
        Self::exit(probe, 0, NO_CONDITION, values)
    }

    /// A way out of a function; `jump` is the element of `JUMPS` of an indirect jump.
    pub const fn exit(probe: u32, kind: u8, condition: u8, jump: u16) -> Self {
        Self(probe as u64 | (condition as u64) << 32 | (kind as u64) << 40 | (jump as u64) << 48)
    }

    /// The same for a session link, whose program must tell entries from returns.
    pub const fn in_session(self, offset: u64) -> Self {
        Self(self.0 & !(0xffff << 48) | (offset & IN_PAGE) << 48)
    }

    /// Whether the site of this session cookie may lie at `ip`: if not, the program is at a return.
    pub const fn may_lie_at(self, ip: u64) -> bool {
        self.0 >> 48 == ip & IN_PAGE
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

    /// Into the table of the site's program.
    pub const fn index(self) -> u16 {
        (self.0 >> 48) as u16
    }
}
