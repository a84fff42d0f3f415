//! The buffers of all processes, from readings to events.

use super::buffer::{News, Progress, Verdict, events_in};
use super::clock::{ClockMap, ClockResidual, ClockSample};
use super::layout::{BUFFER_LEN, Header, Moment, written_times};
use super::objects::{MarkerObject, MarkerRuntime, ObjectId, Passed};
use super::reading::{BufferId, Reading};
use super::sites::{Site, Sites};
use crate::event::Event;
use crate::units::{Nanos, Pid};
use ctrace_common::{Control, Kind};
use std::{collections::HashMap, ops::Range, sync::Arc};

/// What happens in order of time, by whatever way it came.
#[derive(Debug)]
enum Waiting {
    Read(Box<Reading>),
    Changed(Control),
    Mapped { pid: Pid, object: ObjectId, bias: u64 },
}

impl Waiting {
    /// Whether it changes what addresses stand for.
    fn changes_meaning(&self) -> bool {
        match self {
            Self::Read(_) => false,
            Self::Mapped { .. } => true,
            Self::Changed(control) => match Kind::from_wire(control.record.kind) {
                Some(Kind::Exec | Kind::Buffer) => true,
                Some(Kind::Fork) => control.arg0 != u64::from(control.record.pid),
                _ => false,
            },
        }
    }
}

/// A process in one of its lives: each exec begins another.
type Life = (Pid, u32);

/// After the end of a process its threads may still be on their way out.
const AFTERLIFE: Nanos = Nanos::from_millis(1000);

/// See the module.
#[derive(Debug, Default)]
pub struct Markers {
    clock: ClockMap,
    /// Time of the first sample.
    begun: Nanos,
    objects: Vec<MarkerObject>,
    runtimes: Vec<MarkerRuntime>,
    /// How many lives of a process are over.
    lives: HashMap<Pid, u32>,
    sites: HashMap<Life, Sites>,
    /// By life and address.
    buffers: HashMap<(Life, u64), Buffer>,
    /// Lives that are over, since when, to be forgotten.
    over: Vec<(Nanos, Life)>,
    /// Of buffers whose last batch the programs had to drop: events in all.
    cut_off: HashMap<BufferId, u64>,
    /// What is lost with buffers that are forgotten.
    lost_with_buffers: u64,
    /// Lanes of buffers that are gone.
    free_lanes: Vec<usize>,
    lanes: usize,
    /// What waits for its turn.
    waiting: Vec<(Nanos, Waiting)>,
    /// Readings in order of time, each with when it is due: at its oldest event, or that of a later
    /// reading of the same buffer.
    held: Vec<(Nanos, Box<Reading>)>,
    lost: i64,
    malformed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Buffer {
    progress: Progress,
    lane: usize,
    /// Events of its thread were lost since the last delivered one.
    lost_before: u64,
    /// When its latest reading is due.
    due: Nanos,
}

/// Of a buffer whose last batch was dropped.
struct Missing {
    /// That it had seen with that one.
    events: u64,
    /// Up to here they are accounted for, or missing.
    known: u64,
    missing: u64,
}

impl Missing {
    /// A later reading has these.
    fn take_off(&mut self, held: Range<u64>) {
        if held.start < self.events {
            let more = held.end.saturating_sub(held.start.max(self.known));
            self.missing = self.missing.saturating_sub(more);
            self.known = self.known.max(held.end);
        }
    }
}

impl Markers {
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
            self.buffer((self.life(id.pid), id.address)).progress = progress;
        }
    }

    pub(crate) fn process_changed(&mut self, control: &Control) {
        self.waiting.push((Nanos(control.record.ts_ns), Waiting::Changed(*control)));
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
        let is_due = |waiting: &mut (Nanos, Waiting)| waiting.0 <= through;
        let mut due: Vec<_> = self.waiting.extract_if(.., is_due).collect();
        due.sort_by_key(|(time, _)| *time);
        for (_, waiting) in due {
            if waiting.changes_meaning() {
                // What was read before is of the process as it was then.
                self.release(Nanos::MAX, &mut each);
            }
            match waiting {
                Waiting::Mapped { pid, object, bias } => self.map(pid, object, bias),
                Waiting::Changed(control) => self.change(&control),
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
        let mut events = Vec::new();
        let is_due = |held: &mut (Nanos, Box<Reading>)| held.0 <= watermark;
        for (_, reading) in self.held.extract_if(.., is_due).collect::<Vec<_>>() {
            let lane = self.decode(&reading, &mut events);
            if !events.is_sorted_by_key(Event::ts) {
                events.sort_by_key(Event::ts);
            }
            each(lane, &events);
            events.clear();
        }
        let mut cut_off = std::mem::take(&mut self.cut_off);
        cut_off.retain(|id, events| {
            self.progress(id).is_none_or(|progress| progress.missing_of(*events) > 0)
        });
        self.cut_off = cut_off;
    }

    fn progress(&self, id: &BufferId) -> Option<&Progress> {
        self.buffers.get(&(self.life(id.pid), id.address)).map(|buffer| &buffer.progress)
    }

    fn hold(&mut self, reading: Box<Reading>) {
        let oldest = || {
            let header = Header::parse(&reading.bytes[..])?;
            self.clock.times(header.clock)?.oldest(written_times(&reading.bytes))
        };
        let due = Nanos(oldest().unwrap_or(0));
        let BufferId { pid, address } = reading.buffer;
        let last = std::mem::replace(&mut self.buffer((self.life(pid), address)).due, due);
        if due < last {
            // Its writer read the clock, and a signal handler filled the buffer before.
            let of_buffer = self.held.iter_mut().filter(|(_, held)| held.buffer == reading.buffer);
            of_buffer.for_each(|(held_due, _)| *held_due = due.min(*held_due));
        }
        self.held.push((due, reading));
    }

    fn change(&mut self, control: &Control) {
        let pid = Pid(control.record.pid);
        match Kind::from_wire(control.record.kind) {
            // A child begins as a copy of its parent, but with empty buffers.
            Some(Kind::Fork) if control.arg0 != u64::from(pid.0) => {
                let child = Pid(control.arg0 as u32);
                self.begin_life(child);
                if let Some(sites) = self.sites.get(&self.life(pid)).cloned() {
                    self.sites.insert(self.life(child), sites);
                }
            }
            Some(Kind::Exec) => self.begin_life(pid),
            // Its other threads may still ship what they have.
            Some(Kind::ProcessExit) => {
                self.over.push((Nanos(control.record.ts_ns), self.life(pid)));
            }
            Some(Kind::Buffer) => {
                let runtime = u32::from_le_bytes([0, 1, 2, 3].map(|at| control.comm[at]));
                self.pass(pid, Passed { runtime, address: control.arg1 }, |r| r.register);
            }
            _ => {}
        }
    }

    fn pass(&mut self, pid: Pid, passed: Passed, site: impl Fn(&MarkerRuntime) -> u64) {
        if let Some(runtime) = self.runtimes.get(passed.runtime as usize) {
            let (object, bias) = (runtime.object, passed.address.wrapping_sub(site(runtime)));
            self.map(pid, object, bias);
        }
    }

    fn map(&mut self, pid: Pid, object: ObjectId, bias: u64) {
        if let Some(object) = self.objects.get(object.0) {
            let section = object.section.wrapping_add(bias);
            let sites = self.sites.entry(self.life(pid)).or_default();
            sites.add(section, Arc::clone(&object.functions));
        }
    }

    fn begin_life(&mut self, pid: Pid) {
        self.over.push((Nanos::ZERO, self.life(pid)));
        *self.lives.entry(pid).or_default() += 1;
    }

    fn life(&self, pid: Pid) -> Life {
        (pid, self.lives.get(&pid).copied().unwrap_or(0))
    }

    fn forget(&mut self, over: Life) {
        self.sites.remove(&over);
        self.cut_off.retain(|id, events| {
            let buffer = self.buffers.get(&(over, id.address)).filter(|_| id.pid == over.0);
            self.lost_with_buffers += buffer.map_or(0, |b| b.progress.missing_of(*events));
            buffer.is_none()
        });
        self.buffers.retain(|(life, _), buffer| {
            if *life == over {
                self.free_lanes.push(buffer.lane);
            }
            *life != over
        });
        if self.lives.get(&over.0) == Some(&over.1) {
            self.lives.remove(&over.0);
        }
    }

    /// Events that no later batch has told of: all of a buffer that is not known. What is held is not
    /// missing.
    fn cut_off(&self) -> u64 {
        if self.cut_off.is_empty() {
            return 0;
        }
        let missing = self.cut_off.iter().map(|(id, &events)| {
            let progress = self.progress(id);
            let known = progress.map_or(0, Progress::accounted);
            let missing = progress.map_or(events, |progress| progress.missing_of(events));
            (*id, Missing { events, known, missing })
        });
        let mut all: HashMap<_, _> = missing.collect();
        for (_, reading) in &self.held {
            if let Some(of_buffer) = all.get_mut(&reading.buffer) {
                of_buffer.take_off(events_in(&reading.bytes));
            }
        }
        all.values().map(|of_buffer| of_buffer.missing).sum()
    }

    /// Batches that the programs had to drop: of each such buffer, how many events it had seen with
    /// the last of them.
    pub fn set_cut_off(&mut self, buffers: impl IntoIterator<Item = (BufferId, u64)>) {
        self.cut_off.extend(buffers);
    }

    /// How well the clocks' relation is known.
    pub fn clock_residual(&self) -> ClockResidual {
        self.clock.residual()
    }

    /// Events that were written but will not come.
    pub fn lost(&self) -> u64 {
        let told = u64::try_from(self.lost).unwrap_or(0);
        told.saturating_add(self.lost_with_buffers).saturating_add(self.cut_off())
    }

    /// Events and readings that made no sense, since the last time.
    pub fn take_malformed(&mut self) -> u64 {
        std::mem::take(&mut self.malformed)
    }

    fn buffer(&mut self, id: (Life, u64)) -> &mut Buffer {
        self.buffers.entry(id).or_insert_with(|| {
            let lane = self.free_lanes.pop().unwrap_or_else(|| {
                self.lanes += 1;
                self.lanes - 1
            });
            Buffer { progress: Progress::new(self.begun), lane, lost_before: 0, due: Nanos::ZERO }
        })
    }

    /// The new events of a reading; says their lane.
    fn decode(&mut self, reading: &Reading, events: &mut Vec<Event>) -> usize {
        let life = self.life(reading.buffer.pid);
        let id = (life, reading.buffer.address);
        if let Some(passed) = reading.passed {
            self.pass(life.0, passed, |runtime| runtime.flush);
        }
        let mut buffer = *self.buffer(id);
        let header = Header::parse(&reading.bytes[..]);
        let verdict = header
            .map_or(Verdict::Malformed, |header| buffer.progress.turn_to(&header, reading.time));
        match (verdict, header) {
            (Verdict::New { missing }, Some(header)) => {
                self.lost = self.lost.saturating_add(missing);
                let more = u64::try_from(missing).unwrap_or(0);
                buffer.lost_before = buffer.lost_before.saturating_add(more);
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
        self.buffers.insert(id, buffer);
        buffer.lane
    }

    fn add_events(
        &mut self,
        life: Life,
        reading: &Reading,
        header: &Header,
        news: &News,
        events: &mut Vec<Event>,
    ) {
        let sites = self.sites.entry(life).or_default();
        let Some(mut times) = self.clock.times(header.clock) else {
            self.malformed += news.slots();
            return;
        };
        let who = Event::who_is(life.0, reading.tid);
        // Of the last slot: most are like the one before.
        let mut last = (0, Site::Unknown);
        let mut malformed = 0;
        news.read(&reading.bytes, |slot| {
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
            let kind = match slot.moment {
                Moment::Exit => Kind::ScopeExit,
                Moment::Enter | Moment::Whole(_) => Kind::ScopeEnter,
            };
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
#[path = "streams_tests.rs"]
mod tests;
