//! An event as it is held and processed: the four words of its record.
//!
//! Fields are extracted on use. Assembling a record from its fields and then moving it costs more
//! than everything else that holding an event takes.

use crate::units::{FuncId, Pid, Tid};
use ctrace_common::{Kind, RECORD_LEN};

/// Usual kinds of events of calls, together with the reserved byte above them, which is 0.
const KINDS: std::ops::RangeInclusive<u16> = Kind::Enter as u16..=Kind::ScopeExit as u16;

const KIND_SHIFT: u32 = 32;
const SITE_SHIFT: u32 = 40;
const LOST_SHIFT: u32 = 48;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    ts: u64,
    sp: u64,
    /// The process and the thread.
    who: u64,
    /// From the least significant bits: probe, kind, site of the scope (0 for functions), events
    /// lost before.
    what: u64,
}

impl Event {
    /// Reads the event from a ring's bytes, if they hold one of a usual kind.
    #[inline]
    pub(crate) fn from_wire(bytes: &[u8]) -> Option<Self> {
        let bytes = <&[u8; RECORD_LEN]>::try_from(bytes).ok()?;
        let (words, _) = bytes.as_chunks();
        let &[ts, sp, who, what] = words else { return None };
        let [ts, sp, who, what] = [ts, sp, who, what].map(u64::from_le_bytes);
        KINDS.contains(&((what >> KIND_SHIFT) as u16)).then_some(Self { ts, sp, who, what })
    }

    /// Makes an event of a scope. `place` is from [`Self::place`], `who` from [`Self::who_is`].
    #[inline]
    pub(crate) fn of_scope(kind: Kind, ts: u64, sp: u64, who: u64, place: u64) -> Self {
        Self { ts, sp, who, what: (kind as u64) << KIND_SHIFT | place }
    }

    /// Packs a function and a site of its scope.
    #[inline]
    pub(crate) fn place(func: FuncId, site: u8) -> u64 {
        u64::from(site) << SITE_SHIFT | u64::from(func.0)
    }

    pub(crate) fn who_is(pid: Pid, tid: Tid) -> u64 {
        u64::from(tid.0) << 32 | u64::from(pid.0)
    }

    /// Sets the number of events of its thread that were lost before it.
    pub(crate) fn after_loss(&mut self, lost: u16) {
        self.what = self.what << 16 >> 16 | u64::from(lost) << LOST_SHIFT;
    }

    /// Returns the time in nanoseconds.
    #[inline]
    pub fn ts(&self) -> u64 {
        self.ts
    }

    #[inline]
    pub(crate) fn sp(&self) -> u64 {
        self.sp
    }

    /// Returns the process and the thread, equal for all events of a thread.
    #[inline]
    pub(crate) fn who(&self) -> u64 {
        self.who
    }

    #[inline]
    pub(crate) fn pid(&self) -> Pid {
        Pid(self.who as u32)
    }

    #[inline]
    pub(crate) fn tid(&self) -> Tid {
        Tid((self.who >> 32) as u32)
    }

    #[inline]
    pub(crate) fn func(&self) -> FuncId {
        FuncId(self.what as u32)
    }

    #[inline]
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_wire((self.what >> KIND_SHIFT) as u8)
    }

    /// Returns the site of a marker's scope.
    #[inline]
    pub(crate) fn site(&self) -> u8 {
        (self.what >> SITE_SHIFT) as u8
    }

    /// Returns the number of events of its thread that were lost before it.
    #[inline]
    pub(crate) fn lost_before(&self) -> u16 {
        (self.what >> LOST_SHIFT) as u16
    }

    /// Returns true if it ends the call that began with `entered`, with nothing lost in between.
    #[inline]
    pub(crate) fn ends(&self, entered: &Self, by: Kind) -> bool {
        let place = Self::place(entered.func(), entered.site());
        let returned = (by as u64) << KIND_SHIFT | place;
        self.who == entered.who && self.sp == entered.sp && self.what == returned
    }
}

impl From<ctrace_common::Record> for Event {
    #[inline]
    fn from(record: ctrace_common::Record) -> Self {
        Self {
            ts: record.ts_ns,
            sp: record.sp,
            who: Self::who_is(Pid(record.pid), Tid(record.tid)),
            what: u64::from(record.lost_before) << LOST_SHIFT
                | u64::from(record.kind) << KIND_SHIFT
                | Self::place(FuncId(record.probe), record.reserved),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_the_records_fields() {
        for kind in [Kind::Enter, Kind::Point] {
            let mut bytes: [u8; RECORD_LEN] = std::array::from_fn(|i| 0x80 + i as u8);
            (bytes[28], bytes[29]) = (kind as u8, 0);
            let record = ctrace_common::Record::from_bytes(&bytes);
            let Some(event) = Event::from_wire(&bytes) else { panic!("no event") };
            assert_eq!((event.ts(), event.sp()), (record.ts_ns, record.sp));
            assert_eq!((event.pid(), event.tid()), (Pid(record.pid), Tid(record.tid)));
            assert_eq!((event.func(), event.kind()), (FuncId(record.probe), Some(kind)));
            assert_eq!(event.lost_before(), record.lost_before);
        }
    }

    #[test]
    fn a_leaf_is_an_entry_and_its_return() {
        let record = |kind: Kind, sp, tid, lost_before| {
            let kind = kind as u8;
            Event::from(ctrace_common::Record { sp, tid, kind, lost_before, ..Default::default() })
        };
        let entered = record(Kind::Enter, 8, 7, 0);
        assert!(record(Kind::Return, 8, 7, 0).ends(&entered, Kind::Return));
        let after_loss = record(Kind::Enter, 8, 7, 1);
        assert!(record(Kind::Return, 8, 7, 0).ends(&after_loss, Kind::Return));
        assert!(!record(Kind::Return, 8, 7, 1).ends(&after_loss, Kind::Return));
        for other in [
            record(Kind::Enter, 8, 7, 0),
            record(Kind::Return, 9, 7, 0),
            record(Kind::Return, 8, 6, 0),
            record(Kind::Return, 8, 7, 1),
            record(Kind::ExitJump, 8, 7, 0),
        ] {
            assert!(!other.ends(&entered, Kind::Return), "{other:?}");
        }
    }
}
