//! The buffers of all processes, from readings to events.

use super::buffer::{News, Progress, Verdict};
use super::clock::{ClockMap, ClockResidual, ClockSample};
use super::layout::{BUFFER_LEN, Header, Moment, written_times};
use super::lives::{Alive, Buffer, Lanes, Life};
use super::losses::Losses;
use super::objects::{MarkerObject, MarkerRuntime, ObjectId, Passed};
use super::reading::{BufferId, Reading};
use super::sites::Site;
use crate::ingest::decode::ProcessEvent;
use crate::ingest::event::Event;
use crate::units::{Nanos, Pid};
use ctrace_common::{Change, Kind};
use std::{collections::HashMap, sync::Arc};

mod dropped;

/// What happens in order of time, by whatever way it came.
#[derive(Debug)]
enum Waiting {
    Read(Box<Reading>),
    Changed(ProcessEvent),
    Mapped { pid: Pid, object: ObjectId, bias: u64 },
}

/// After the end of a process its threads may still be on their way out.
const AFTERLIFE: Nanos = Nanos::from_millis(1000);

/// See the module.
#[derive(Debug, Default)]
pub struct Markers {
    clock: ClockMap,
    /// Times of the first sample and of the last one.
    begun: Nanos,
    latest: Nanos,
    objects: Vec<MarkerObject>,
    runtimes: Vec<MarkerRuntime>,
    /// How many lives of a process are over.
    lives: HashMap<Pid, u32>,
    alive: HashMap<Life, Alive>,
    /// Lives that are over, since when, to be forgotten.
    over: Vec<(Nanos, Life)>,
    /// Dropped batches in all lives.
    cut_offs: usize,
    lanes: Lanes,
    /// What waits for its turn.
    waiting: Vec<(Nanos, Waiting)>,
    /// Readings in order of time, each with when it is due: at its oldest event, or that of a later
    /// reading of the same buffer.
    held: Vec<(Nanos, Box<Reading>)>,
    /// A later reading is due before an earlier one of its buffer.
    is_disordered: bool,
    losses: Losses,
    malformed: u64,
}

impl Markers {
    /// So many threads can write at a time.
    pub(crate) fn new(writers: usize) -> Self {
        Self { losses: Losses::of_writers(writers as u64), ..Self::default() }
    }

    /// Adds a file with scopes.
    pub fn add_object(&mut self, object: MarkerObject) -> ObjectId {
        self.objects.push(object);
        ObjectId(self.objects.len() - 1)
    }

    /// Adds a runtime; says its number, which goes into the cookies of its sites.
    pub fn add_runtime(&mut self, runtime: MarkerRuntime) -> u32 {
        self.runtimes.push(runtime);
        self.runtimes.len() as u32 - 1
    }

    /// A process maps an object so far above the addresses of its headers, at the least from
    /// `time` on.
    pub fn map_object(&mut self, pid: Pid, object: ObjectId, bias: u64, time: Nanos) {
        self.waiting.push((time, Waiting::Mapped { pid, object, bias }));
    }

    /// A buffer that was there before tracing began: what is in it is not of this trace.
    pub fn adopt(&mut self, id: BufferId, bytes: &[u8; BUFFER_LEN], time: Nanos) {
        if let Some(progress) = Progress::adopt(bytes, time) {
            match self.buffer(self.life(id.pid), id.address) {
                Some(buffer) => buffer.progress = progress,
                None => self.malformed += 1,
            }
        }
    }

    pub(crate) fn process_changed(&mut self, event: &ProcessEvent) {
        self.waiting.push((event.time, Waiting::Changed(*event)));
    }

    /// Takes a reading. Its events come out with a sample that is taken after it.
    pub fn read(&mut self, reading: Reading) {
        self.waiting.push((reading.time, Waiting::Read(Box::new(reading))));
    }

    /// Both clocks, after all that was handed in so far; all of it up to `through` is here. Hands
    /// over events that cannot wait for [`Self::release`], those of a lane in order of time.
    pub fn sample(
        &mut self,
        sample: ClockSample,
        through: Nanos,
        mut each: impl FnMut(usize, &[Event]),
    ) {
        if self.begun == Nanos::ZERO {
            self.begun = sample.time;
        }
        if self.clock.is_set_back_by(sample) {
            self.release(Nanos::MAX, &mut each);
        }
        self.clock.add(sample);
        self.latest = self.latest.max(sample.time);
        let is_due = |waiting: &mut (Nanos, Waiting)| waiting.0 <= through;
        let mut due: Vec<_> = self.waiting.extract_if(.., is_due).collect();
        due.sort_by_key(|(time, _)| *time);
        for (_, waiting) in due {
            if self.changes_meaning(&waiting) {
                // What was read before is of the process as it was then.
                self.release(Nanos::MAX, &mut each);
            }
            match waiting {
                Waiting::Mapped { pid, object, bias } => self.map(pid, object, bias),
                Waiting::Changed(event) => self.change(&event),
                Waiting::Read(reading) => self.hold(reading),
            }
        }
        let is_past = |over: &mut (Nanos, Life)| over.0.saturating_add(AFTERLIFE) <= through;
        for (_, over) in self.over.extract_if(.., is_past).collect::<Vec<_>>() {
            self.release(Nanos::MAX, &mut each);
            self.forget(over);
        }
    }

    /// Hands over the events up to `watermark`, and some after it, those of a lane in order of time.
    /// The others stay what they are, which is a fourth of the size.
    pub fn release(&mut self, watermark: Nanos, mut each: impl FnMut(usize, &[Event])) {
        self.set_dues();
        let mut events = Vec::new();
        let is_due = |held: &mut (Nanos, Box<Reading>)| held.0 <= watermark;
        for (_, reading) in self.held.extract_if(.., is_due).collect::<Vec<_>>() {
            let Some(lane) = self.decode(&reading, &mut events) else {
                self.malformed += 1;
                continue;
            };
            if !events.is_sorted_by_key(Event::ts) {
                events.sort_by_key(Event::ts);
            }
            each(lane, &events);
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

    /// No reading is due after a later one of its buffer: the writer read the clock, and a signal
    /// handler filled the buffer before.
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

    /// Whether it changes what addresses stand for.
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
            // A child begins as a copy of its parent, but with empty buffers.
            Change::Fork { child, .. } if child != pid.0 => {
                let child = Pid(child);
                self.begin_life(child);
                if let Some(parent) = self.alive.get(&self.life(pid)) {
                    let child = (self.life(child), Alive::like(parent));
                    self.alive.extend([child]);
                }
            }
            Change::Exec { .. } => self.begin_life(pid),
            // Its other threads may still ship what they have.
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

    /// Where an object is, a site of whose runtime was passed.
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

    /// What some buffers hold is no longer read: a report is not whole.
    pub fn leave_unread(&mut self) {
        self.malformed += 1;
    }

    /// How often a buffer told of more events than can have been written: so many counts are wrong,
    /// and what is lost with them nobody knows.
    pub(crate) fn implausible_counts(&self) -> u64 {
        self.losses.implausible()
    }

    /// How well the clocks' relation is known.
    pub fn clock_residual(&self) -> ClockResidual {
        self.clock.residual()
    }

    /// Events that were written but will not come.
    pub fn lost(&self) -> u64 {
        self.losses.known().saturating_add(self.cut_off())
    }

    /// Events, readings and counts that made no sense, since the last time.
    pub fn take_malformed(&mut self) -> u64 {
        std::mem::take(&mut self.malformed).saturating_add(self.losses.take_doubts())
    }

    fn buffer(&mut self, life: Life, address: u64) -> Option<&mut Buffer> {
        self.alive.entry(life).or_default().buffer(address, self.begun, &mut self.lanes)
    }

    /// The new events of a reading; says their lane. Nothing if there are too many buffers.
    fn decode(&mut self, reading: &Reading, events: &mut Vec<Event>) -> Option<usize> {
        let (life, address) = (self.life(reading.buffer.pid), reading.buffer.address);
        if let Some(passed) = reading.passed {
            self.pass(life.0, passed, |runtime| runtime.flush);
        }
        let mut buffer = *self.buffer(life, address)?;
        let header = Header::parse(&reading.bytes[..]).filter(|header| !header.is_reserved_set);
        let verdict = header
            .map_or(Verdict::Malformed, |header| buffer.progress.turn_to(&header, reading.time));
        match (verdict, header) {
            (Verdict::New { missing }, Some(header)) => {
                buffer.lose(missing, &mut self.losses, reading.time.since(self.begun));
                let news = buffer.progress.take(&reading.bytes, reading.before.as_deref());
                self.add_events(life, reading, &header, &news, events);
            }
            (Verdict::Old, _) => {}
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
        header: &Header,
        news: &News,
        events: &mut Vec<Event>,
    ) {
        let sites = &mut self.alive.entry(life).or_default().sites;
        let Some(mut times) = self.clock.times(header.clock) else {
            self.malformed += news.slots();
            return;
        };
        let who = Event::who_is(life.0, reading.tid);
        // Of the last slot: most are like the one before.
        let mut last = (0, Site::Unknown);
        let mut malformed = 0;
        news.read(&reading.bytes, |slot| {
            let kind = match slot.moment {
                Moment::Unknown => return malformed += 1,
                Moment::Exit => Kind::ScopeExit,
                Moment::Enter | Moment::Whole(_) => Kind::ScopeEnter,
            };
            if slot.site != last.0 {
                last = (slot.site, sites.find(slot.site));
            }
            let place = match last.1 {
                Site::Chosen(place) => Event::place(place.function, place.number),
                Site::Other => return,
                Site::Unknown => return malformed += 1,
            };
            let sp = slot.stack_pointer(header.stack);
            let Some(ts) = times.at(slot.time) else { return malformed += 1 };
            events.push(Event::of_scope(kind, ts, sp, who, place));
            if let Moment::Whole(duration) = slot.moment
                && let Some(ts) = times.at(slot.time.wrapping_add(duration))
            {
                events.push(Event::of_scope(Kind::ScopeExit, ts, sp, who, place));
            }
        });
        self.malformed += malformed;
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
