//! A thread of its own drains the rings, so that they do not overflow while a report is computed or
//! while other programs use the CPUs.
//!
//! Each pass notes the time, looks into the marker buffers, reads every ring to its end, and sends
//! its findings together with that time less the hold. Every older event has been seen. The
//! exception is a thread that was preempted for longer between taking the time and handing in the
//! record. Buffers come before rings: a buffer that is flushed in between is in a ring by then.

use super::{
    bell::{Bell, Caller, Woken},
    buffers::{Buffers, OwnedBuffer, Unread},
    pace::Pace,
    room,
    timetable::{Intervals, Timetable},
};
use crate::bpf::{self, News, Rings};
use ctrace_common::Change;
use ctrace_core::{
    ingest::{
        change::ProcessEvent,
        decode::{Decoded, decode},
        event::Event,
    },
    marker::{BUFFER_LEN, BufferId, ClockSample, Reading},
    units::{Nanos, Pid, Tid},
    values::RingPayload,
};
use rustix::process::setpriority_process;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc,
};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The time for which events wait for older ones from other CPUs.
pub(crate) const HOLD: Nanos = Nanos::from_millis(100);

/// The shortest and the longest pause between looks into marker buffers.
const LOOKS_PAUSE: (Nanos, Nanos) = (Nanos::from_millis(50), Nanos::from_millis(500));
/// The pause in multiples of the CPU time of the look before: with ten thousand threads a look
/// takes milliseconds, however little they do. Events wait for it.
const PAUSE_PER_LOOK: u64 = 20;
/// A batch is sent at this size, in the middle of a pass if necessary.
const BATCH_BYTES: usize = 512 << 10;
/// The least and the greatest number of batches in flight. They wait during a slow report, or while
/// other processes use the CPUs.
const BATCHES: (usize, usize) = (256, 2048);
/// The batches take at most the memory that ctrace may use, divided by this.
const BATCHES_SHARE: u64 = 1 << 4;

/// What a reader waits for.
pub(crate) struct Waiting {
    pub(crate) intervals: Option<Intervals>,
    /// The time for which events wait for older ones.
    pub(crate) hold: Nanos,
}

/// The decoded contents of one or several rings, and the time up to which the order is settled.
pub(crate) struct Batch {
    /// Events of calls, in the order of arrival.
    events: Vec<Event>,
    /// Rings, each with the number of the next events that came from it.
    runs: Vec<(usize, usize)>,
    pub changes: Vec<ProcessEvent>,
    /// Values beside the events.
    pub payloads: Vec<RingPayload>,
    /// Bytes of their texts.
    texts: usize,
    /// The number of records that made no sense.
    pub malformed: u64,
    /// Contents of marker buffers, shipped through a ring or read from outside. A buffer is copied
    /// once on its way, from the ring into its reading.
    pub readings: Vec<Reading>,
    /// The number of buffer copies in all readings.
    copies: usize,
    /// Both clocks, after everything in this batch and before, and the time up to which all is
    /// there.
    pub sample: Option<(ClockSample, Nanos)>,
    /// No older event is to be expected.
    pub settled: Option<Nanos>,
    /// Processes whose buffers are not all read.
    pub unread: Vec<(Pid, Unread)>,
    /// It completes the answer to [`Reader::call`]s before that time.
    pub answers: Option<Nanos>,
}

impl Batch {
    fn new() -> Self {
        let (events, runs, changes, payloads, readings, unread) = Default::default();
        Self {
            events,
            runs,
            changes,
            payloads,
            texts: 0,
            malformed: 0,
            readings,
            copies: 0,
            sample: None,
            settled: None,
            unread,
            answers: None,
        }
    }

    fn push_event(&mut self, ring: usize, event: Event) {
        match self.runs.last_mut() {
            Some((last, count)) if *last == ring => *count += 1,
            _ => self.runs.push((ring, 1)),
        }
        self.events.push(event);
    }

    fn push_payload(&mut self, payload: RingPayload) {
        self.texts += payload.texts().1;
        self.payloads.push(payload);
    }

    fn push_reading(&mut self, reading: Reading) {
        self.copies += 1 + usize::from(reading.before.is_some());
        self.readings.push(reading);
    }

    fn is_full(&self) -> bool {
        let events = size_of_val(&self.events[..]) + size_of_val(&self.changes[..]);
        let payloads = size_of_val(&self.payloads[..]) + self.texts;
        events + payloads + self.copies * BUFFER_LEN >= BATCH_BYTES
    }

    /// Iterates over the events of one ring after the other, in the order of arrival.
    pub(crate) fn events(&self) -> impl Iterator<Item = (usize, &[Event])> {
        let mut rest = self.events.as_slice();
        self.runs.iter().map(move |&(ring, count)| {
            let (run, behind) = rest.split_at(count);
            rest = behind;
            (ring, run)
        })
    }
}

/// The thread that drains the rings.
pub(crate) struct Reader {
    stop: Arc<AtomicBool>,
    caller: Caller,
}

impl Reader {
    /// Starts the thread. `adopted` brings buffers that existed before tracing; the others announce
    /// themselves.
    pub(crate) fn start(
        rings: Rings,
        adopted: mpsc::Receiver<OwnedBuffer>,
        news: News,
        pace: Pace,
        Waiting { intervals, hold }: Waiting,
    ) -> std::io::Result<(Self, Receiver<Batch>)> {
        let (sender, receiver) = channel(batches(pace));
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let mut source = Source::new(rings, adopted, hold);
        let mut timetable = Timetable::new(pace, intervals, hold);
        let mut bell = Bell::new(Some(news))?;
        let caller = bell.caller();
        std::thread::Builder::new().name("reader".into()).spawn(move || {
            if !pace.is_calm {
                precede();
            }
            source.run(&sender, &seen, &mut bell, &mut timetable);
        })?;
        Ok((Self { stop, caller }, receiver))
    }

    /// Asks for everything that there is by now.
    pub(crate) fn call(&self) {
        self.caller.call();
    }

    /// Asks for a last pass, after which the channel ends.
    pub(crate) fn finish(&self) {
        self.stop.store(true, Ordering::Release);
        self.call();
    }
}

/// The source of events.
struct Source {
    rings: Rings,
    buffers: Buffers,
    /// The pause until the next look into the buffers.
    looks_pause: Nanos,
    adopted: mpsc::Receiver<OwnedBuffer>,
    /// Changes of buffers by time, not put in order yet.
    changes: Vec<(Nanos, BufferChange)>,
    /// The time at which the last pass began that no unfinished record held up.
    unblocked: Nanos,
    hold: Nanos,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Usual,
    /// The session has asked for it.
    Answer,
    Last,
}

/// A change of a process's buffers.
enum BufferChange {
    New(OwnedBuffer),
    ThreadGone(Pid, Tid),
    ProcessGone(Pid),
}

impl Source {
    fn new(rings: Rings, adopted: mpsc::Receiver<OwnedBuffer>, hold: Nanos) -> Self {
        let (buffers, changes) = Default::default();
        let (looks_pause, unblocked) = (LOOKS_PAUSE.0, Nanos::ZERO);
        Self { rings, buffers, looks_pause, adopted, changes, unblocked, hold }
    }

    fn run(
        &mut self,
        sender: &Sender<Batch>,
        stop: &AtomicBool,
        bell: &mut Bell,
        timetable: &mut Timetable,
    ) {
        let mut woken = Woken::Time;
        loop {
            let fill = self.rings.fill();
            let kind = match woken {
                _ if stop.load(Ordering::Acquire) => Pass::Last,
                Woken::Session { .. } => Pass::Answer,
                Woken::Time | Woken::Ring | Woken::Program => Pass::Usual,
            };
            if kind != Pass::Usual {
                // Readings of buffers come out with the pass after this one. The last look also
                // finds buffers that only the rings tell of.
                self.looks_pause = Nanos::ZERO;
                if !self.pass(sender, Pass::Usual) {
                    return;
                }
            }
            if !self.pass(sender, kind) || kind == Pass::Last {
                return;
            }
            let settled = self.seen_all_to().since(self.hold);
            woken = bell.sleep(timetable.pause(woken, fill, settled, bpf::now()));
        }
    }

    /// Makes one pass over everything; returns `false` if nobody listens any more.
    fn pass(&mut self, sender: &Sender<Batch>, kind: Pass) -> bool {
        let last = kind == Pass::Last;
        let begun = bpf::now();
        let mut batch = Batch::new();
        let mut listening = true;
        let mut send_if_full = |batch: &mut Batch| {
            if batch.is_full() {
                let full = std::mem::replace(batch, Batch::new());
                listening &= sender.blocking_send(full).is_ok();
            }
        };
        // The readings of earlier passes were made before this pass began. They are in order with
        // the ring records up to this pass, and come out with this pass's sample.
        self.buffers.hand_on();
        for owned in self.adopted.try_iter() {
            self.buffers.add(owned, begun);
        }
        if last || begun.since(self.buffers.looked()) >= self.looks_pause {
            let before = bpf::own_time();
            self.buffers.look(begun, last, |reading| {
                batch.push_reading(reading);
                send_if_full(&mut batch);
            });
            let spent = bpf::own_time().since(before).saturating_add(self.buffers.take_spent());
            self.looks_pause = pause_after(spent);
        }
        let changes = &mut self.changes;
        let drained = self.rings.drain(|ring, record| {
            match decode(record) {
                Ok(Decoded::Event(event)) => batch.push_event(ring, event),
                Ok(Decoded::Payload(payload)) => batch.push_payload(payload),
                Ok(Decoded::Buffer(reading)) => batch.push_reading(reading),
                Ok(Decoded::Change(event)) => {
                    changes.extend(change_of_buffers(&event).map(|change| (event.time, change)));
                    batch.changes.push(event);
                }
                Err(_) => batch.malformed += 1,
            }
            send_if_full(&mut batch);
        });
        self.apply_changes(begun);
        if drained.blocked_rings == 0 {
            self.unblocked = begun;
        }
        batch.sample = Some((bpf::sample(), if last { Nanos::MAX } else { begun }));
        batch.settled = Some(if last { Nanos::MAX } else { self.seen_all_to().since(self.hold) });
        batch.unread = self.buffers.take_unread();
        batch.answers = (kind == Pass::Answer).then_some(begun);
        listening & sender.blocking_send(batch).is_ok()
    }

    /// Applies changes from before this pass. They come through several rings, and all are there
    /// now.
    fn apply_changes(&mut self, begun: Nanos) {
        let is_due = |change: &mut (Nanos, BufferChange)| change.0 <= begun;
        let mut due: Vec<_> = self.changes.extract_if(.., is_due).collect();
        due.sort_by_key(|(time, _)| *time);
        for (time, change) in due {
            match change {
                BufferChange::New(owned) => self.buffers.add(owned, time),
                BufferChange::ThreadGone(pid, tid) => self.buffers.forget_thread(pid, tid),
                BufferChange::ProcessGone(pid) => self.buffers.forget(pid),
            }
        }
    }

    /// Returns the time up to which everything is in the batches sent so far.
    fn seen_all_to(&self) -> Nanos {
        let new = self.changes.iter().map(|(time, _)| *time).min().unwrap_or(Nanos::MAX);
        self.unblocked.min(self.buffers.handed_to()).min(new)
    }
}

/// Has the current thread run soon although others use the CPUs. Without the right to do so it waits
/// for its turn.
fn precede() {
    let _ = setpriority_process(None, -20);
}

/// Returns the number of batches that there is room for. A session that is one of many takes the
/// fewest.
fn batches(pace: Pace) -> usize {
    if pace.is_calm {
        return BATCHES.0;
    }
    batches_in(room::memory())
}

fn batches_in(memory: u64) -> usize {
    let room = memory / BATCHES_SHARE / BATCH_BYTES as u64;
    usize::try_from(room).unwrap_or(usize::MAX).clamp(BATCHES.0, BATCHES.1)
}

/// Returns the pause after a look that took this CPU time.
fn pause_after(look: Nanos) -> Nanos {
    Nanos(look.0.saturating_mul(PAUSE_PER_LOOK)).clamp(LOOKS_PAUSE.0, LOOKS_PAUSE.1)
}

/// Returns what a change in a process means for the buffers of its threads.
fn change_of_buffers(event: &ProcessEvent) -> Option<BufferChange> {
    let ProcessEvent { pid, tid, .. } = *event;
    Some(match event.change {
        Change::Buffer { inside, address, .. } => {
            BufferChange::New(OwnedBuffer { id: BufferId { pid, address }, tid, inside })
        }
        Change::ThreadExit { .. } => BufferChange::ThreadGone(pid, tid),
        Change::Exec { .. } | Change::ProcessExit { .. } => BufferChange::ProcessGone(pid),
        Change::Fork { .. }
        | Change::Rename { .. }
        | Change::Restored { .. }
        | Change::Wake { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_take_a_twentieth_of_the_time_at_most() {
        let pauses = [0, 1, 3, 10, 1000].map(|look| pause_after(Nanos::from_millis(look)).0);
        assert_eq!(pauses.map(|nanos| nanos / 1_000_000), [50, 50, 60, 200, 500]);
    }

    #[test]
    fn the_queue_takes_a_sixteenth_of_the_memory_within_bounds() {
        let counts = [0, 1 << 30, 4 << 30, 1 << 40].map(batches_in);
        assert_eq!(counts, [256, 256, 512, 2048]);
    }

    #[test]
    fn both_copies_of_a_buffer_fill_a_batch() {
        let reading = |before| Reading {
            buffer: BufferId { pid: Pid(1), address: 0 },
            tid: Tid(1),
            time: Nanos(0),
            bytes: Box::new([0; BUFFER_LEN]),
            passed: None,
            before,
        };
        let (mut one, mut two) = (Batch::new(), Batch::new());
        for number in 1..=BATCH_BYTES / BUFFER_LEN {
            one.push_reading(reading(None));
            two.push_reading(reading(Some(Box::new([0; BUFFER_LEN]))));
            assert_eq!(one.is_full(), number * BUFFER_LEN >= BATCH_BYTES);
            assert_eq!(two.is_full(), 2 * number * BUFFER_LEN >= BATCH_BYTES);
        }
    }

    #[test]
    fn a_batch_gives_back_what_was_put_in() {
        let event = |ts_ns| Event::from(ctrace_common::Record { ts_ns, ..Default::default() });
        let mut batch = Batch::new();
        for (ring, ts) in [(1, 7), (1, 9), (0, 8), (1, 5)] {
            batch.push_event(ring, event(ts));
        }
        let events: Vec<_> = batch
            .events()
            .map(|(ring, run)| (ring, run.iter().map(Event::ts).collect::<Vec<_>>()))
            .collect();
        assert_eq!(events, [(1, vec![7, 9]), (0, vec![8]), (1, vec![5])]);
    }
}
