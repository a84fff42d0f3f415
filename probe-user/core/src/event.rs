//! An event as it is held and processed: the four words of its record.
//!
//! Fields are taken out where they are needed. A record put together from its fields and then
//! moved costs more than all else that is done to hold an event.

use crate::decode::u64_at;
use crate::units::{FuncId, Pid, Tid};
use ctrace_common::{Kind, RECORD_LEN};

const KIND_SHIFT: u32 = 32;
const SITE_SHIFT: u32 = 40;
const LOST_SHIFT: u32 = 48;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    ts: u64,
    sp: u64,
    /// Process and thread.
    who: u64,
    /// From the least significant: probe, kind, place of the scope (0 for functions), events lost
    /// before.
    what: u64,
}

impl Event {
    /// The event in a ring's bytes, if they hold one.
    #[inline]
    pub(crate) fn from_wire(bytes: &[u8]) -> Option<Self> {
        let bytes = <&[u8; RECORD_LEN]>::try_from(bytes).ok()?;
        (Kind::Enter as u8..=Kind::Point as u8).contains(&bytes[28]).then(|| Self {
            ts: u64_at(bytes, 0),
            sp: u64_at(bytes, 8),
            who: u64_at(bytes, 16),
            what: u64_at(bytes, 24),
        })
    }

    #[inline]
    pub(crate) fn ts(&self) -> u64 {
        self.ts
    }

    #[inline]
    pub(crate) fn sp(&self) -> u64 {
        self.sp
    }

    /// Equal for events of one thread.
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
    pub(crate) fn kind(&self) -> Option<Kind> {
        Kind::from_wire((self.what >> KIND_SHIFT) as u8)
    }

    /// Which of the places of its scope it is, for markers.
    #[inline]
    pub(crate) fn site(&self) -> u8 {
        (self.what >> SITE_SHIFT) as u8
    }

    #[inline]
    pub(crate) fn follows_loss(&self) -> bool {
        self.what >> LOST_SHIFT > 0
    }

    /// Whether it is the end of a call that began with `entered`, with nothing lost between.
    #[inline]
    pub(crate) fn ends(&self, entered: &Self, by: Kind) -> bool {
        let place = u64::from(entered.site()) << SITE_SHIFT | u64::from(entered.func().0);
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
            who: u64::from(record.tid) << 32 | u64::from(record.pid),
            what: u64::from(record.lost_before) << LOST_SHIFT
                | u64::from(record.reserved) << SITE_SHIFT
                | u64::from(record.kind) << KIND_SHIFT
                | u64::from(record.probe),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Decoded, decode};

    #[test]
    fn the_words_are_the_records_fields() {
        for kind in [Kind::Enter, Kind::Point] {
            let bytes: [u8; RECORD_LEN] =
                std::array::from_fn(|i| if i == 28 { kind as u8 } else { 0x80 + i as u8 });
            let Ok(Decoded::Event(record)) = decode(&bytes) else { panic!("no event") };
            let Some(event) = Event::from_wire(&bytes) else { panic!("no event") };
            assert_eq!((event.ts(), event.sp()), (record.ts_ns, record.sp));
            assert_eq!((event.pid(), event.tid()), (Pid(record.pid), Tid(record.tid)));
            assert_eq!((event.func(), event.kind()), (FuncId(record.probe), Some(kind)));
            assert!(event.follows_loss());
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
