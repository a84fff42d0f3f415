//! Converts the readings of all processes' buffers into events.

use super::buffer::{BufferState, News, ReadingVerdict};
use super::clock::{ClockMap, ClockResidual, ClockSample};
use super::layout::{BUFFER_LEN, Header, Moment, TIME_MASK, written_times};
use super::lives::{Alive, Buffer, Lanes, Life};
use super::losses::Losses;
use super::names::{MarkerSink, OpenScope};
use super::objects::{MarkerObject, MarkerRuntime, ObjectId, Passed, Request};
use super::pieces::{ValueRoom, name_before};
use super::reading::{BufferId, Reading};
use super::sites::Site;
use crate::ingest::change::ProcessEvent;
use crate::ingest::event::Event;
use crate::units::{Nanos, Pid};
use ctrace_common::{Change, Kind};
use std::{collections::HashMap, sync::Arc};

mod dropped;
mod polls;

use polls::add_polls;

/// An occurrence that is processed in order of time, not of arrival.
#[derive(Debug)]
enum Waiting {
    Read(Box<Reading>),
    Changed(ProcessEvent),
    Mapped { pid: Pid, object: ObjectId, bias: u64 },
}

/// The time after a process's end in which its threads may still be exiting.
const AFTERLIFE: Nanos = Nanos::from_millis(1000);
/// The nanoseconds to which the clocks are known, with some to spare.
const SAME: u64 = 64;

/// All marker buffers: see the module.
#[derive(Debug, Default)]
pub struct Markers {
    clock: ClockMap,
    /// The times of the first and of the last sample.
    begun: Nanos,
    latest: Nanos,
    objects: Vec<MarkerObject>,
    runtimes: Vec<MarkerRuntime>,
    /// The number of past lives of each process.
    lives: HashMap<Pid, u32>,
    alive: HashMap<Life, Alive>,
    /// Past lives to be forgotten, with the time of their end.
    over: Vec<(Nanos, Life)>,
    /// The number of dropped batches in all lives.
    cut_offs: usize,
    lanes: Lanes,
    /// Occurrences that wait for their turn.
    waiting: Vec<(Nanos, Waiting)>,
    /// Readings by due time: that of their oldest event, or of a later reading of the same buffer.
    held: Vec<(Nanos, Box<Reading>)>,
    /// True if a later reading is due before an earlier one of its buffer.
    is_disordered: bool,
    losses: Losses,
    malformed: u64,
}

impl Markers {
    /// Makes a converter for so many simultaneous writers.
    pub(crate) fn new(writers: usize) -> Self {
        Self { losses: Losses::of_writers(writers as u64), ..Self::default() }
    }

    /// Adds a file with scopes.
    pub fn add_object(&mut self, object: MarkerObject) -> ObjectId {
        self.objects.push(object);
        ObjectId(self.objects.len() - 1)
    }

    /// Adds a runtime. Returns its number, which goes into the cookies of its sites.
    pub fn add_runtime(&mut self, runtime: MarkerRuntime) -> u32 {
        self.runtimes.push(runtime);
        self.runtimes.len() as u32 - 1
    }

    /// Records that a process maps an object with this bias, from `time` at the latest.
    pub fn map_object(&mut self, pid: Pid, object: ObjectId, bias: u64, time: Nanos) {
        self.waiting.push((time, Waiting::Mapped { pid, object, bias }));
    }

    /// Adopts a buffer older than tracing: its contents are not of this trace.
    pub fn adopt(&mut self, id: BufferId, bytes: &[u8; BUFFER_LEN], time: Nanos) {
        if let Some(progress) = BufferState::adopt(bytes, time) {
            match self.buffer(self.life(id.pid), id.address) {
                Some(buffer) => buffer.progress = progress,
                None => self.malformed += 1,
            }
        }
    }

    pub(crate) fn process_changed(&mut self, event: &ProcessEvent) {
        self.waiting.push((event.time, Waiting::Changed(*event)));
    }

    /// Takes a reading. Its events come out with a later sample.
    pub fn read(&mut self, reading: Reading) {
        self.waiting.push((reading.time, Waiting::Read(Box::new(reading))));
    }

    /// Takes a sample of both clocks, made after all earlier input. All input up to `through` must
    /// have arrived. Emits events that cannot wait for [`Self::release`], in order of time within a
    /// lane.
    pub fn sample(&mut self, sample: ClockSample, through: Nanos, sink: &mut impl MarkerSink) {
        if self.begun == Nanos::ZERO {
            self.begun = sample.time;
        }
        if self.clock.is_set_back_by(sample) {
            self.release(Nanos::MAX, sink);
        }
        self.clock.add(sample);
        self.latest = self.latest.max(sample.time);
        let is_due = |waiting: &mut (Nanos, Waiting)| waiting.0 <= through;
        let mut due: Vec<_> = self.waiting.extract_if(.., is_due).collect();
        due.sort_by_key(|(time, _)| *time);
        for (_, waiting) in due {
            if self.changes_meaning(&waiting) {
                // Earlier readings belong to the process's previous state.
                self.release(Nanos::MAX, sink);
            }
            match waiting {
                Waiting::Mapped { pid, object, bias } => self.map(pid, object, bias),
                Waiting::Changed(event) => self.change(&event),
                Waiting::Read(reading) => self.hold(reading),
            }
        }
        let is_past = |over: &mut (Nanos, Life)| over.0.saturating_add(AFTERLIFE) <= through;
        for (_, over) in self.over.extract_if(.., is_past).collect::<Vec<_>>() {
            self.release(Nanos::MAX, sink);
            self.forget(over);
        }
    }

    /// Emits the events up to `watermark`, and some after it, in order of time within a lane. The
    /// others stay undecoded, which takes a fourth of the memory.
    pub fn release(&mut self, watermark: Nanos, sink: &mut impl MarkerSink) {
        self.set_dues();
        let mut events = Vec::new();
        let is_due = |held: &mut (Nanos, Box<Reading>)| held.0 <= watermark;
        for (_, reading) in self.held.extract_if(.., is_due).collect::<Vec<_>>() {
            let Some(lane) = self.decode(&reading, &mut events, sink) else {
                self.malformed += 1;
                continue;
            };
            if !events.is_sorted_by_key(Event::ts) {
                events.sort_by_key(Event::ts);
            }
            sink.events(lane, &events);
            events.clear();
        }
    }

    fn hold(&mut self, reading: Box<Reading>) {
        let oldest = || {
            let header = Header::parse(&reading.bytes[..])?;
            self.clock.times(header.clock)?.oldest(written_times(&reading.bytes))
        };
        let due = Nanos(oldest().unwrap_or(0));
        let BufferId { pid, address } = reading.buffer;
        let Some(buffer) = self.buffer(self.life(pid), address) else {
            return self.malformed += 1;
        };
        let last = std::mem::replace(&mut buffer.due, due);
        self.is_disordered |= due < last;
        self.held.push((due, reading));
    }

    /// Orders the due times of each buffer's readings. A signal handler may have filled the buffer
    /// after the writer read the clock.
    fn set_dues(&mut self) {
        if !std::mem::take(&mut self.is_disordered) {
            return;
        }
        let mut earliest: HashMap<BufferId, Nanos> = HashMap::new();
        for (due, reading) in self.held.iter_mut().rev() {
            let of_later = earliest.entry(reading.buffer).or_insert(*due);
            *of_later = (*of_later).min(*due);
            *due = *of_later;
        }
    }

    /// Returns whether it changes the meaning of addresses.
    fn changes_meaning(&self, waiting: &Waiting) -> bool {
        match waiting {
            Waiting::Read(_) => false,
            Waiting::Mapped { pid, object, bias } => !self.is_mapped(*pid, *object, *bias),
            Waiting::Changed(event) => match event.change {
                Change::Exec { .. } => true,
                Change::Buffer { runtime, site, .. } => {
                    let passed = Passed { runtime, address: site };
                    let place = self.place(passed, |runtime| runtime.register);
                    place.is_some_and(|(object, bias)| !self.is_mapped(event.pid, object, bias))
                }
                Change::Fork { child, .. } => child != event.pid.0,
                _ => false,
            },
        }
    }

    fn change(&mut self, event: &ProcessEvent) {
        let pid = event.pid;
        match event.change {
            // A forked child begins as a copy of its parent, but with empty buffers.
            Change::Fork { child, .. } if child != pid.0 => {
                let child = Pid(child);
                self.begin_life(child);
                if let Some(parent) = self.alive.get(&self.life(pid)) {
                    let child = (self.life(child), Alive::like(parent));
                    self.alive.extend([child]);
                }
            }
            Change::Exec { .. } => self.begin_life(pid),
            // The process's other threads may still ship their last batches.
            Change::ProcessExit { .. } => self.over.push((event.time, self.life(pid))),
            Change::Buffer { runtime, site, .. } => {
                self.pass(pid, Passed { runtime, address: site }, |runtime| runtime.register);
            }
            _ => {}
        }
    }

    fn pass(&mut self, pid: Pid, passed: Passed, site: impl Fn(&MarkerRuntime) -> u64) {
        if let Some((object, bias)) = self.place(passed, site) {
            self.map(pid, object, bias);
        }
    }

    /// Places an object by a passed site of its runtime.
    fn place(
        &self,
        passed: Passed,
        site: impl Fn(&MarkerRuntime) -> u64,
    ) -> Option<(ObjectId, u64)> {
        let runtime = self.runtimes.get(passed.runtime as usize)?;
        Some((runtime.object, passed.address.wrapping_sub(site(runtime))))
    }

    fn is_mapped(&self, pid: Pid, object: ObjectId, bias: u64) -> bool {
        let Some(object) = self.objects.get(object.0) else { return true };
        let section = object.section.wrapping_add(bias);
        let alive = self.alive.get(&self.life(pid));
        alive.is_some_and(|alive| alive.sites.has(section, &object.functions))
    }

    fn map(&mut self, pid: Pid, object: ObjectId, bias: u64) {
        let life = self.life(pid);
        if let Some(object) = self.objects.get(object.0) {
            let section = object.section.wrapping_add(bias);
            let sites = &mut self.alive.entry(life).or_default().sites;
            self.malformed += u64::from(!sites.add(section, Arc::clone(&object.functions)));
        }
    }

    fn begin_life(&mut self, pid: Pid) {
        self.over.push((Nanos::ZERO, self.life(pid)));
        *self.lives.entry(pid).or_default() += 1;
    }

    fn life(&self, pid: Pid) -> Life {
        (pid, self.lives.get(&pid).copied().unwrap_or(0))
    }

    /// Records that some buffers are no longer read, so that the report is incomplete.
    pub fn leave_unread(&mut self) {
        self.malformed += 1;
    }

    /// Returns the number of impossible counts of buffers. The number of events lost with them is
    /// unknown.
    pub(crate) fn implausible_counts(&self) -> u64 {
        self.losses.implausible()
    }

    /// Returns the uncertainty of the clocks' relation.
    pub fn clock_residual(&self) -> ClockResidual {
        self.clock.residual()
    }

    /// Returns the number of events that were written but will not arrive.
    pub fn lost(&self) -> u64 {
        self.losses.known().saturating_add(self.cut_off())
    }

    /// Takes the number of malformed events, readings and counts since the last call.
    pub fn take_malformed(&mut self) -> u64 {
        std::mem::take(&mut self.malformed).saturating_add(self.losses.take_doubts())
    }

    fn buffer(&mut self, life: Life, address: u64) -> Option<&mut Buffer> {
        self.alive.entry(life).or_default().buffer(address, self.begun, &mut self.lanes)
    }

    /// Decodes a reading's new events. Returns their lane; `None` with too many buffers.
    fn decode(
        &mut self,
        reading: &Reading,
        events: &mut Vec<Event>,
        sink: &mut impl MarkerSink,
    ) -> Option<usize> {
        let (life, address) = (self.life(reading.buffer.pid), reading.buffer.address);
        if let Some(passed) = reading.passed {
            self.pass(life.0, passed, |runtime| runtime.flush);
        }
        let mut buffer = *self.buffer(life, address)?;
        let header = Header::parse(&reading.bytes[..]).filter(|header| !header.is_reserved_set);
        let verdict = header.map_or(ReadingVerdict::Malformed, |header| {
            buffer.progress.turn_to(&header, reading.time)
        });
        match (verdict, header) {
            (ReadingVerdict::New { missing }, Some(header)) => {
                buffer.lose(missing, &mut self.losses, reading.time.since(self.begun));
                let news = buffer.progress.take(&reading.bytes, reading.before.as_deref());
                self.add_events(life, reading, (&header, &news), &mut buffer.latest, events, sink);
            }
            (ReadingVerdict::Old, _) => {}
            _ => self.malformed += 1,
        }
        if buffer.lost_before > 0
            && let Some(first) = events.iter_mut().min_by_key(|event| event.ts())
        {
            first.after_loss(buffer.lost_before.try_into().unwrap_or(u16::MAX));
            buffer.lost_before = 0;
        }
        let alive = self.alive.entry(life).or_default();
        alive.buffers.insert(address, buffer);
        if let Some(cut_off) = alive.take_accounted(address) {
            self.cut_offs -= 1;
            self.losses.settle_pending(cut_off, 0);
        }
        Some(buffer.lane)
    }

    fn add_events(
        &mut self,
        life: Life,
        reading: &Reading,
        (header, news): (&Header, &News),
        latest: &mut u64,
        events: &mut Vec<Event>,
        sink: &mut impl MarkerSink,
    ) {
        let Alive { sites, names, .. } = self.alive.entry(life).or_default();
        let Some(mut times) = self.clock.times(header.clock) else {
            self.malformed += news.slots();
            return;
        };
        let who = Event::who_is(life.0, reading.tid);
        // The last slot's site: most slots repeat it.
        let mut last = (0, Site::Unknown);
        let (mut malformed, mut name, mut values) = (0, Vec::new(), ValueRoom::default());
        news.read(&reading.bytes, |index, slot| {
            let mut kind = match slot.moment {
                Moment::Piece => return,
                Moment::Unknown => return malformed += 1,
                Moment::Exit => Kind::ScopeExit,
                Moment::Enter | Moment::Whole(_) | Moment::Sample => Kind::ScopeEnter,
            };
            if slot.site != last.0 {
                last = (slot.site, sites.find(slot.site));
            }
            let place = match last.1 {
                Site::Chosen(place) => place,
                Site::Other => return,
                Site::Unknown => return malformed += 1,
            };
            let is_entry = matches!(slot.moment, Moment::Enter | Moment::Sample);
            if place.is_point && is_entry {
                kind = Kind::Point;
            } else if place.is_point || slot.moment == Moment::Sample {
                return malformed += 1;
            }
            if place.is_request {
                let told = values.read(&reading.bytes, index, place.carried);
                let request = told.and_then(|told| {
                    let [file, cleared] = *told.numbers.first_chunk()?;
                    let mut at = |ticks| times.at(ticks & TIME_MASK).map(Nanos);
                    let cleared = (cleared != 0).then(|| at(cleared)).flatten();
                    Some(Request { pid: life.0, time: at(slot.time)?, file, cleared })
                });
                match request {
                    Some(request) => sink.asked(request),
                    None => malformed += 1,
                }
                return;
            }
            let sp = slot.stack_pointer(header.stack);
            if place.is_async {
                let value = values.read(&reading.bytes, index, place.carried);
                let at = |ticks| times.at(ticks);
                malformed += u64::from(!add_polls((&slot, sp), value, (who, place), at, events));
                return;
            }
            let function = if place.is_named_late {
                let open = OpenScope { tid: reading.tid, site: slot.site, sp };
                match slot.moment {
                    Moment::Exit => names.leave(open).unwrap_or(place.function),
                    _ => {
                        let is_known = name_before(&reading.bytes, index, &mut name);
                        let named = is_known.then(|| sink.named(place.function, &name)).flatten();
                        if slot.moment == Moment::Enter && !place.is_point {
                            names.enter(open, named);
                        }
                        named.unwrap_or(place.function)
                    }
                }
            } else {
                place.function
            };
            let (carried, place_is_point) = (place.carried, place.is_point);
            let place = Event::place(function, place.number);
            let Some(mut ts) = times.at(slot.time) else { return malformed += 1 };
            // Values are told apart by their times, and the order of points matters. Clocks that are not
            // known to the nanosecond may give two the same time.
            if place_is_point && !carried.is_nothing() && latest.wrapping_sub(ts) < SAME {
                ts = latest.saturating_add(1);
            }
            *latest = ts;
            let event = Event::of_scope(kind, ts, sp, who, place);
            if !carried.is_nothing() && slot.moment != Moment::Exit {
                sink.values(&event, values.read(&reading.bytes, index, carried));
            }
            events.push(event);
            if let Moment::Whole(duration) = slot.moment
                && let Some(ts) = times.at(slot.time.wrapping_add(duration))
            {
                *latest = ts;
                events.push(Event::of_scope(Kind::ScopeExit, ts, sp, who, place));
            }
        });
        self.malformed += malformed;
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod named_tests;
#[cfg(test)]
mod points_tests;
#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
