//! Locks: for each one that threads waited for, a counter of these threads.

use super::{COUNTER, ExportError, GLOBAL, LOCK_TRACK, Message, Trace, field, labels};
use crate::recording::replay::locks::{LockWaits, WaitChange};

impl Trace<'_, '_> {
    /// Writes the counters of all locks, in a sequence of their own behind those of the threads.
    pub(super) fn lock_waits(&mut self, waits: &LockWaits) -> Result<(), ExportError> {
        let Some(first) = waits.changes.first() else { return Ok(()) };
        for (track, lock) in (LOCK_TRACK..).zip(&waits.locks) {
            self.process(lock.pid.0);
            let name = format!("{}: threads waiting", labels::text(&lock.name));
            self.counter_track(track, lock.pid.0, &name, None);
            self.make_room()?;
        }
        let sequence = GLOBAL + 1 + self.sequences.len() as u64;
        self.begin_sequence(sequence, first.time, &Message::default());
        let mut last = first.time;
        for WaitChange { time, lock, waiting } in &waits.changes {
            let (packet, event) = (&mut self.packet, &mut self.event);
            event.number(field::EVENT_TYPE, COUNTER);
            event.number(field::EVENT_TRACK, LOCK_TRACK | *lock as u64);
            event.number(field::EVENT_COUNT, *waiting);
            packet.number(field::TIMESTAMP, time.saturating_sub(last));
            packet.number(field::SEQUENCE, sequence).message(field::TRACK_EVENT, event);
            event.0.clear();
            last = *time;
            self.end_packet();
            self.make_room()?;
        }
        Ok(())
    }
}
