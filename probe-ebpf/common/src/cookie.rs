//! The attach cookie: all that an eBPF program learns about its site.

/// `condition` of a site that always counts.
pub const NO_CONDITION: u8 = 0xff;
/// `index` of a site that has no entry in a table.
pub const NO_INDEX: u16 = 0xffff;

/// The bits of an address that mapping a file does not change.
const IN_PAGE: u64 = 0xfff;

/// The 64 bits of a cookie: bits 0–31 probe id, 32–39 condition code of a conditional jump (the x86
/// `cc` nibble, or [`NO_CONDITION`]), 40–47 the record kind that an exit site or a USDT site reports
/// (0 elsewhere), 48–63 the site's index in the table of its program, or [`NO_INDEX`].
/// The table is `VALUES` for programs that read values, and `JUMPS` for other exit sites. On a
/// session link bits 32–47 are the site's offset in its page. In functions of Go, bit 40 says that the
/// site is a jump, and bits 41–47 are the place of a goroutine's id in its descriptor ([`GoidPlace`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie(pub u64);

impl Cookie {
    /// Makes the cookie of an entry or return.
    pub const fn plain(probe: u32) -> Self {
        Self::with_values(probe, NO_INDEX)
    }

    /// Makes the cookie of a site whose values come from the element `values` of `VALUES`.
    pub const fn with_values(probe: u32, values: u16) -> Self {
        Self::exit(probe, 0, NO_CONDITION, values)
    }

    /// Makes the cookie of a USDT site that reports events of this kind. Its values come from the
    /// element `values` of `VALUES`, or it has none: [`NO_INDEX`].
    pub const fn usdt(probe: u32, kind: u8, values: u16) -> Self {
        Self::exit(probe, kind, NO_CONDITION, values)
    }

    /// Makes the cookie of a way out of a function. An indirect jump has the element `jump` of
    /// `JUMPS`.
    pub const fn exit(probe: u32, kind: u8, condition: u8, jump: u16) -> Self {
        Self(probe as u64 | (condition as u64) << 32 | (kind as u64) << 40 | (jump as u64) << 48)
    }

    /// Returns the same cookie for a function of Go. `is_jump`: it is the site of a jump that may leave it.
    pub const fn of_go(self, is_jump: bool, goid: GoidPlace) -> Self {
        Self(self.0 & !(0xff << 40) | (is_jump as u64) << 40 | (goid.0 as u64) << 41)
    }

    /// Returns true for a jump in a function of Go.
    pub const fn is_jump_of_go(self) -> bool {
        self.kind() & 1 != 0
    }

    /// Returns where descriptors of goroutines have their ids.
    pub const fn goid(self) -> GoidPlace {
        GoidPlace(self.kind() >> 1)
    }

    /// Returns the same cookie for a session link, whose program must distinguish entries from
    /// returns.
    pub const fn in_session(self, offset: u64) -> Self {
        Self(self.0 & !(0xffff << 32) | (offset & IN_PAGE) << 32)
    }

    /// Returns true if the site of this session cookie may lie at `ip`. If not, the program is at a
    /// return.
    pub const fn may_lie_at(self, ip: u64) -> bool {
        (self.0 >> 32) & 0xffff == ip & IN_PAGE
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

    /// Returns the index in the table of the site's program.
    pub const fn index(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

/// The place of a goroutine's id in its descriptor: one of [`GoidPlace::ALL`], or unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoidPlace(u8);

impl GoidPlace {
    pub const UNKNOWN: Self = Self(0);
    /// In Go 1.23 and 1.24.
    pub const AT_160: Self = Self(20);
    /// In the other versions so far.
    pub const AT_152: Self = Self(19);
    pub const ALL: [Self; 2] = [Self::AT_152, Self::AT_160];

    /// Returns the place with this many bytes before it, if the programs read that.
    pub fn at(bytes: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.word() as u64 * 8 == bytes)
    }

    /// Returns the words before it.
    #[inline(always)]
    pub const fn word(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_of_go_tell_jumps_and_the_place_of_ids() {
        for place in [GoidPlace::UNKNOWN, GoidPlace::AT_152, GoidPlace::AT_160] {
            for is_jump in [false, true] {
                let cookie = Cookie::exit(4711, 9, 5, 77).of_go(is_jump, place);
                assert_eq!((cookie.goid(), cookie.is_jump_of_go()), (place, is_jump));
                assert_eq!((cookie.probe(), cookie.condition(), cookie.index()), (4711, 5, 77));
            }
        }
        let at = [152, 160].map(GoidPlace::at);
        assert_eq!(at, [Some(GoidPlace::AT_152), Some(GoidPlace::AT_160)]);
        for no_place in [0, 144, 156, 168, u64::MAX] {
            assert_eq!(GoidPlace::at(no_place), None, "{no_place}");
        }
    }
}
